package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Answer is the answer to an admission request.
type Answer struct {
	// Patch is a JSON Patch; nil if the object stays as it is.
	Patch any
	// Refused tells the user why the request is denied; empty if it is allowed.
	Refused string
	// Missing says that the request is denied because an object that it names does not exist.
	Missing bool
	// Warnings are for the user.
	Warnings []string
}

// Review answers an admission request. After an error, the failurePolicy of the webhook decides.
type Review func(ctx context.Context, request *admissionv1.AdmissionRequest) (Answer, error)

// Results of requests.
const (
	ResultPatched   = "patched"
	ResultUnchanged = "unchanged"
	ResultRefused   = "refused"
	ResultError     = "error"
)

// Recorder records a request: its result and how long the answer took.
type Recorder func(result string, took time.Duration)

// Handler serves a Review. The server has already limited the body of the request.
func Handler(review Review, clock clock.PassiveClock, record Recorder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		began := clock.Now()
		result, err := answer(w, req, review)
		if err != nil {
			klog.FromContext(req.Context()).Error(err, "Cannot answer a request of a webhook", "path", req.URL.Path)
			http.Error(w, err.Error(), http.StatusBadRequest)
			result = ResultError
		}
		record(result, clock.Since(began))
	})
}

// answer writes the answer, or returns an error.
func answer(w http.ResponseWriter, req *http.Request, review Review) (result string, err error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return "", fmt.Errorf("reading an AdmissionReview: %w", err)
	}
	var asked admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &asked); err != nil {
		return "", fmt.Errorf("reading an AdmissionReview: %w", err)
	}
	if asked.Request == nil {
		return "", errors.New("reading an AdmissionReview: it has no request")
	}
	if max(values(asked.Request.Object.Raw), values(asked.Request.OldObject.Raw)) > mostValues {
		return "", fmt.Errorf("%s %s/%s: it has more than %d values", asked.Request.Kind.Kind, asked.Request.Namespace, asked.Request.Name, mostValues)
	}
	found, err := review(req.Context(), asked.Request)
	if err != nil {
		return "", fmt.Errorf("%s %s/%s: %w", asked.Request.Kind.Kind, asked.Request.Namespace, asked.Request.Name, err)
	}
	response := &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: found.Refused == "", Warnings: found.Warnings}
	result = ResultUnchanged
	switch {
	case found.Refused != "":
		result = ResultRefused
		response.Result = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: found.Refused}
		if found.Missing {
			response.Result.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueNotFound}}}
		}
	case found.Patch != nil:
		result = ResultPatched
		patch, err := json.Marshal(found.Patch)
		if err != nil {
			return "", fmt.Errorf("encoding a patch: %w", err)
		}
		response.Patch, response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	}
	text, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: asked.TypeMeta, Response: response})
	if err != nil {
		return "", fmt.Errorf("encoding an AdmissionReview: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(text)
	if err != nil { // the API server has given up
		return ResultError, nil
	}
	return result, nil
}

// mostValues is the maximum number of JSON values in an object. A value of two bytes can take two KiB once decoded.
// Objects of 1.5 MiB, the size that etcd stores, stay below the limit if their values have 7 bytes on average.
const mostValues = 250_000

// values returns the number of values in JSON, which can be invalid.
func values(text []byte) (count int) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == ',' || c == '{' || c == '['):
			count++
		}
	}
	return count
}
