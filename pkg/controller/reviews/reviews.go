// Package reviews answers the reviews of group visibility.kube-queue.dev. The API server passes each review to a
// mutating webhook, which puts the answer into its status. Reviews can only be created with dryRun=All, so nothing is
// stored.
//
// The API server has authorized the creation of the review in its namespace. The package asks it again about other
// namespaces in the answer: see access. Anyone who reaches the port could name any author, so it answers only reviews
// that came through an API server: see Proof.
package reviews

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/program/webhook"
	"kube-queue.dev/kube-queue/pkg/visibility"
)

// Names of objects that the chart installs.
const (
	// Service is the name of the Service for the replica that decides, and of the Secret with the certificate.
	Service = "kube-queue-controller-webhook"
	// Configuration is the configuration of the webhook.
	Configuration = "kube-queue-reviews"
	// Path is the path of the webhook.
	Path = "/reviews"
)

// Largest is the maximum size of a webhook request, in bytes. A question has a few KiB, and at most 256 KiB of
// annotations. The rest is for the groups of its author.
const Largest = 512 << 10

// Recorder records a review: its kind, the result and how long the answer took.
type Recorder func(kind, result string, took time.Duration)

// Options configures Handler.
type Options struct {
	// Model returns a current model of the state.
	Model func(context.Context) (*visibility.Model, error)
	// Estimate returns how long a unit will wait from the returned time on, if this is known. It can be nil.
	Estimate func(m *visibility.Model, namespace, name string) (forecast.Estimate, time.Time, bool)
	// Advise predicts what would happen to a new unit.
	Advise    func(m *visibility.Model, namespace string, spec *v1alpha1.QueueUnitSpec, access visibility.Access) (*visibilityv1alpha1.QueueUnitReviewStatus, error)
	Authorize Authorize
	// Genuine reports whether a review comes from an API server.
	Genuine func(review []byte) bool
	Clock   clock.PassiveClock
	Record  Recorder
}

// unproven is the answer to a request that might not come from an API server.
const unproven = "kube-queue-controller cannot verify that the API server sent this review; try again in some seconds"

// Handler serves the webhook.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	for kind, answer := range answers() {
		mux.Handle("POST "+Path+"/"+kind, webhook.Handler(func(ctx context.Context, asked *admissionv1.AdmissionRequest) (webhook.Answer, error) {
			if !o.Genuine(asked.Object.Raw) {
				return webhook.Answer{Refused: unproven}, nil
			}
			return o.answer(ctx, asked, answer)
		}, o.Clock, func(result string, took time.Duration) { o.Record(kind, result, took) }))
	}
	return mux
}

// asking is a question to an answerer.
type asking struct {
	model     *visibility.Model
	estimate  func(namespace, name string) *visibilityv1alpha1.StartEstimate
	options   *Options
	namespace string
	raw       []byte
	access    visibility.Access
}

// answerer returns the status of a review. An error of type refusal is for the caller.
type answerer func(asking) (any, error)

// refusal is why a review has no answer.
type refusal struct{ error }

// answers returns the answerers of the reviews, by resource.
func answers() map[string]answerer {
	return map[string]answerer{
		"queueunitreviews": answererOf(func(a asking, review *visibilityv1alpha1.QueueUnitReview) (*visibilityv1alpha1.QueueUnitReviewStatus, error) {
			switch asksNew := review.Spec.NewUnit != nil; {
			case asksNew && review.Spec.Unit != "":
				return nil, errors.New("set either spec.unit or spec.newUnit")
			case asksNew:
				return a.options.Advise(a.model, a.namespace, review.Spec.NewUnit, a.access)
			}
			status, err := a.model.Why(a.namespace, review.Spec.Unit, a.access)
			if err == nil {
				status.Start = a.estimate(a.namespace, review.Spec.Unit)
			}
			return status, err
		}),
		"queuereviews": answererOf(func(a asking, review *visibilityv1alpha1.QueueReview) (*visibilityv1alpha1.QueueReviewStatus, error) {
			status, err := a.model.Queues(a.namespace, review.Spec, a.access)
			if err != nil {
				return nil, err
			}
			for i := range status.Units {
				u := &status.Units[i]
				u.Start = a.estimate(u.Namespace, u.Name)
			}
			for i := range status.Groups {
				// In all queues together, these units can be so far back that playing the queues until they start takes too long.
				if u := &status.Groups[i].First; review.Spec.Queue != "" || u.Position == 1 {
					u.Start = a.estimate(u.Namespace, u.Name)
				}
			}
			return status, nil
		}),
		"quotareviews": answererOf(func(a asking, review *visibilityv1alpha1.QuotaReview) (*visibilityv1alpha1.QuotaReviewStatus, error) {
			return a.model.Quotas(a.namespace, review.Spec, a.access)
		}),
	}
}

// answererOf answers reviews of a type. The error of the function is for the caller.
func answererOf[R, S any, P interface {
	*R
	lenient.Object
}](of func(asking, P) (S, error)) answerer {
	kind := lenient.Kind{New: func() lenient.Object { return P(new(R)) }}
	return func(a asking) (any, error) {
		object, err := kind.Decode(a.raw) // it has not been validated yet
		if err != nil {
			return nil, err
		}
		if unreadable, is := object.(*lenient.Unreadable); is {
			return nil, unreadable.Err
		}
		status, err := of(a, object.(P))
		if err != nil {
			return nil, refusal{err}
		}
		return status, nil
	}
}

// patch is a JSON Patch that sets the status.
type patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (o *Options) answer(ctx context.Context, asked *admissionv1.AdmissionRequest, answer answerer) (webhook.Answer, error) {
	if !ptr.Deref(asked.DryRun, false) {
		return webhook.Answer{Refused: fmt.Sprintf("a %s is a question and is never stored: create it with --dry-run=server (dryRun=All)", asked.Kind.Kind)}, nil
	}
	model, err := o.Model(ctx)
	if errors.Is(err, controller.ErrNotDeciding) {
		return webhook.Answer{Refused: err.Error()}, nil
	}
	if err != nil {
		return webhook.Answer{}, err
	}
	caller := &access{ctx: ctx, user: asked.UserInfo, authorize: o.Authorize, units: map[string]bool{}}
	status, err := answer(asking{model: model, estimate: o.estimates(model), options: o, namespace: asked.Namespace, raw: asked.Object.Raw, access: caller.access()})
	if caller.failed != nil {
		return webhook.Answer{}, caller.failed
	}
	if why, is := errors.AsType[refusal](err); is {
		_, missing := errors.AsType[visibility.Missing](why.error)
		return webhook.Answer{Refused: why.Error(), Missing: missing}, nil
	}
	if err != nil {
		return webhook.Answer{}, fmt.Errorf("reading the review: %w", err)
	}
	return webhook.Answer{Patch: []patch{{Op: "add", Path: "/status", Value: status}}}, nil
}

// estimates returns a function that estimates when a unit of the model starts, or returns nil if unknown.
func (o *Options) estimates(m *visibility.Model) func(namespace, name string) *visibilityv1alpha1.StartEstimate {
	return func(namespace, name string) *visibilityv1alpha1.StartEstimate {
		if o.Estimate == nil {
			return nil
		}
		estimate, from, known := o.Estimate(m, namespace, name)
		if !known {
			return nil
		}
		return visibility.StartEstimate(estimate, from)
	}
}
