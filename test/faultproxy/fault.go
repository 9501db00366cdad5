package faultproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Body returns the content of the request.
func (x *Exchange) Body() []byte { return x.body }

// Landed is the response of the API server.
type Landed struct{ answer *http.Response }

// Code returns the HTTP status, or 0 if there was no response.
func (l Landed) Code() int {
	if l.answer == nil {
		return 0
	}
	return l.answer.StatusCode
}

// Land sends the request to the API server and waits for the response, without passing it on. It
// can be called again. The request continues if the program gives up, as it often does in a real
// network. Do not use it for watches, which do not end.
func (x *Exchange) Land() Landed {
	if lost(x.r.Context()) {
		return Landed{} // the network was cut before the request reached the API server
	}
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
		return Landed{}
	}
	return Landed{recorder.Result()}
}

// unansweredKey is the context key of a *bool that is set if the API server does not respond.
type unansweredKey struct{}

// longest is the timeout of requests other than watches.
const longest = time.Minute

// Answer passes the response of the API server on to the program.
func (x *Exchange) Answer(landed Landed) {
	if landed.answer == nil {
		x.Cut()
		return
	}
	x.done = true
	for key, values := range landed.answer.Header {
		x.w.Header()[key] = values
	}
	x.w.WriteHeader(landed.answer.StatusCode)
	_, _ = io.Copy(x.w, landed.answer.Body) // an error means that the program has closed the connection
}

// Refuse responds with an error. The API server does not receive the request.
func (x *Exchange) Refuse(code int, retryAfter time.Duration) {
	x.done = true
	seconds := int(retryAfter.Seconds())
	status := apierrors.NewGenericServerResponse(code, x.Method, schema.GroupResource{Group: x.Group, Resource: x.Resource},
		x.Name, "the test wants it so", seconds, true).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	text, err := json.Marshal(status)
	if err != nil {
		text = []byte(fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, code))
	}
	x.w.Header().Set("Content-Type", "application/json")
	if seconds > 0 {
		x.w.Header().Set("Retry-After", fmt.Sprint(seconds))
	}
	x.w.WriteHeader(code)
	_, _ = x.w.Write(text)
}

// Cut breaks the connection, and with it all other requests on it.
func (x *Exchange) Cut() {
	x.done = true
	cut(x.r.Context())
}

// Hang does not respond until the program gives up.
func (x *Exchange) Hang() {
	x.done = true
	<-x.r.Context().Done()
}

// Wait waits for the delay, or until the program gives up.
func (x *Exchange) Wait(delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.r.Context().Done():
	}
}

// Forward forwards the request without a fault.
func Forward(x *Exchange) { x.Answer(x.Land()) }

// Late delays requests and responses. A request lands even if its sender has given up or has
// exited.
func Late(before, after time.Duration) Fault {
	return func(x *Exchange) {
		x.Wait(before)
		if x.Watch {
			x.done = true
			x.proxy.direct.ServeHTTP(x.w, x.r)
			return
		}
		landed := x.Land()
		x.Wait(after)
		x.Answer(landed)
	}
}

// Twice sends requests twice, like an intermediary that retries. The program receives the first
// response.
func Twice(x *Exchange) {
	first := x.Land()
	x.Land()
	x.Answer(first)
}

// TwiceAndReported is like Twice, but the program receives the second response.
func TwiceAndReported(x *Exchange) {
	x.Land()
	x.Answer(x.Land())
}

// Fail responds with the HTTP status, and with a Retry-After header if retryAfter is above 0.
func Fail(code int, retryAfter time.Duration) Fault {
	return func(x *Exchange) { x.Refuse(code, retryAfter) }
}

// CutBefore breaks the connection before the request lands.
func CutBefore(x *Exchange) { x.Cut() }

// CutAfter breaks the connection after the request has landed, before the response.
func CutAfter(x *Exchange) {
	x.Land()
	x.Cut()
}

// HangBefore drops requests.
func HangBefore(x *Exchange) { x.Hang() }

// HangAfter drops responses.
func HangAfter(x *Exchange) {
	x.Land()
	x.Hang()
}
