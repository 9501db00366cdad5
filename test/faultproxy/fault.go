package faultproxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"time"
)

// Fault handles a request. If it neither answers nor ends the request, the connection is cut.
type Fault func(*Exchange)

// Exchange is a request and its handling.
type Exchange struct {
	Request

	proxy *Proxy
	w     http.ResponseWriter
	r     *http.Request
	body  []byte
	done  bool
}

// Land sends the request to the API server and returns its response, or nil if there is none. The
// program does not receive the response. The request continues if the program gives up, as it often
// does in a real network. Do not use it for watches, which do not end.
func (x *Exchange) Land() *http.Response {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), longest)
	defer cancel()
	// A new context: with the values of the server's context the reverse proxy panics if a response
	// breaks off.
	var unanswered bool
	ctx = context.WithValue(ctx, unansweredKey{}, &unanswered)
	request := x.r.WithContext(context.WithValue(ctx, http.ServerContextKey, nil))
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(x.body)), int64(len(x.body))
	recorder := httptest.NewRecorder()
	x.proxy.direct.ServeHTTP(recorder, request)
	if unanswered {
		return nil
	}
	return recorder.Result()
}

// unansweredKey is the context key of a *bool that is set if the API server does not respond.
type unansweredKey struct{}

// longest is the timeout of requests other than watches.
const longest = time.Minute

// Cut breaks the connection, and with it all other requests on it.
func (x *Exchange) Cut() {
	x.done = true
	cut(x.r.Context())
}

// Forward forwards the request without a fault.
func (x *Exchange) Forward() {
	response := x.Land()
	if response == nil {
		x.Cut()
		return
	}
	x.done = true
	for key, values := range response.Header {
		x.w.Header()[key] = values
	}
	x.w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(x.w, response.Body) // an error means that the program has closed the connection
}
