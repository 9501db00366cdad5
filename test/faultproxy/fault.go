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

// Fault does something with a request. One that neither answers it nor ends it otherwise
// has its connection cut.
type Fault func(*Exchange)

// Exchange is a request on its way, and what becomes of it.
type Exchange struct {
	Request

	proxy *Proxy
	w     http.ResponseWriter
	r     *http.Request
	body  []byte
	done  bool
}

// Landed is what the API server answered.
type Landed struct{ answer *http.Response }

// Code is the HTTP status; 0 when there was no answer.
func (l Landed) Code() int {
	if l.answer == nil {
		return 0
	}
	return l.answer.StatusCode
}

// Land sends the request to the API server and waits for its answer, which the program
// does not hear yet. It may be called again. A program that gives up meanwhile does not
// end it, as it often does not where a network is between. For no watch: that has no end.
func (x *Exchange) Land() Landed {
	if lost(x.r.Context()) {
		return Landed{} // it was still on its way when the network was cut
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), longest)
	defer cancel()
	// The server's own marks on the context would have the reverse proxy panic where an
	// answer breaks off.
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

// unansweredKey is where a request has a bool that becomes true when the API server gives
// no answer.
type unansweredKey struct{}

// longest is how long the API server may take to answer what is not a watch.
const longest = time.Minute

// Answer has the program hear what the API server answered.
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
	_, _ = io.Copy(x.w, landed.answer.Body) // who no longer listens hears nothing
}

// Refuse answers with an error of our own. The API server knows nothing of the request.
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

// Cut breaks the connection, with everything else that goes over it.
func (x *Exchange) Cut() {
	x.done = true
	cut(x.r.Context())
}

// Hang says nothing until the program gives up.
func (x *Exchange) Hang() {
	x.done = true
	<-x.r.Context().Done()
}

// Wait lets some time pass, or less if the program gives up.
func (x *Exchange) Wait(delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.r.Context().Done():
	}
}

// Forward is no fault.
func Forward(x *Exchange) { x.Answer(x.Land()) }

// Late has requests land late, and answers come late. What was sent lands though its
// sender has given up or is gone.
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

// Twice has requests land twice, as where something on the way tries again. The program
// hears the first answer.
func Twice(x *Exchange) {
	first := x.Land()
	x.Land()
	x.Answer(first)
}

// TwiceAndReported is Twice where the program hears the second answer.
func TwiceAndReported(x *Exchange) {
	x.Land()
	x.Answer(x.Land())
}

// Fail answers with the HTTP status, and when to try again if that is above 0.
func Fail(code int, retryAfter time.Duration) Fault {
	return func(x *Exchange) { x.Refuse(code, retryAfter) }
}

// CutBefore breaks the connection before a request lands.
func CutBefore(x *Exchange) { x.Cut() }

// CutAfter breaks it when the request has landed, before its answer is heard.
func CutAfter(x *Exchange) {
	x.Land()
	x.Cut()
}

// HangBefore swallows requests.
func HangBefore(x *Exchange) { x.Hang() }

// HangAfter swallows answers.
func HangAfter(x *Exchange) {
	x.Land()
	x.Hang()
}
