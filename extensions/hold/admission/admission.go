// Package admission serves the admission webhooks of job-extensions: those that hold jobs and pods, and the one that
// rejects an invalid quota tree.
package admission

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/hold"
	"kube-queue.dev/kube-queue/pkg/program/webhook"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

// Names of objects that the chart installs.
const (
	// Service is the name of the Service of the webhooks, and of the Secret with their certificate.
	Service = "job-extensions-webhook"
	// HoldConfiguration is the configuration of the webhooks that hold jobs.
	HoldConfiguration = "kube-queue-hold"
	// TreeConfiguration is the configuration of the webhook that refuses an invalid quota tree.
	TreeConfiguration = "kube-queue-trees"
)

// Largest is the maximum size of a request to a webhook, in bytes. The API server accepts an object of 3 MiB, and etcd
// one of 1.5 MiB. A request has the new object and the old one. Some characters, and the names of fields, take more
// space in JSON than in the original object.
const Largest = 8 << 20

// Recorder records a request of a webhook: its result and how long the answer took.
type Recorder func(webhook, result string, took time.Duration)

// Handler serves the webhooks. The paths are those in the configurations.
func Handler(adapters []framework.Adapter, clock clock.PassiveClock, record Recorder) http.Handler {
	kinds := hold.Of(adapters)
	mux := http.NewServeMux()
	handle := func(path, name string, review webhook.Review) {
		mux.Handle("POST "+path, webhook.Handler(review, clock, func(result string, took time.Duration) { record(name, result, took) }))
	}
	handle("/hold", "hold", holder(kinds, func(kind hold.Kind, request hold.Request, _ []byte) []decision.Operation {
		return hold.Marked(kind.Kind, request)
	}))
	// A path cannot have parameters.
	for path, fenced := range map[string]bool{"/managed": false, "/managed-fenced": true} {
		handle(path, "managed", holder(kinds, func(kind hold.Kind, request hold.Request, raw []byte) []decision.Operation {
			request.Holdable = decision.Holdable(kind.Adapter, raw)
			return hold.Managed(kind.Kind, request, fenced)
		}))
	}
	for path, managed := range map[string]bool{"/gate": false, "/gate-managed": true} {
		handle(path, "gate", func(_ context.Context, asked *admissionv1.AdmissionRequest) (webhook.Answer, error) {
			var pod map[string]any
			if err := json.Unmarshal(asked.Object.Raw, &pod); err != nil {
				return webhook.Answer{}, fmt.Errorf("reading the pod: %w", err)
			}
			return patched(hold.Gate(pod, managed)), nil
		})
	}
	handle("/trees", "trees", checkTree)
	return mux
}

// checkTree refuses an invalid ElasticQuotaTree. The last valid one stays in force.
func checkTree(_ context.Context, asked *admissionv1.AdmissionRequest) (webhook.Answer, error) {
	faults, warnings := manifest.Check(asked.Object.Raw)
	answer := webhook.Answer{Warnings: warnings}
	if len(faults) > 0 {
		answer.Refused = "the quota tree is invalid, so the one before stays in force: " + strings.Join(faults, "; ")
	}
	return answer, nil
}

// holder returns a review that holds a job with the given operations. They also get the job as JSON.
func holder(kinds hold.Kinds, operations func(kind hold.Kind, request hold.Request, raw []byte) []decision.Operation) webhook.Review {
	return func(_ context.Context, asked *admissionv1.AdmissionRequest) (webhook.Answer, error) {
		of := schema.GroupVersionKind(asked.Kind)
		kind, known := kinds.Find(of)
		if !known {
			return webhook.Answer{}, fmt.Errorf("job-extensions does not know kind %s; the webhook configuration is of another version of kube-queue", of)
		}
		request := hold.Request{Create: asked.Operation == admissionv1.Create}
		if err := json.Unmarshal(asked.Object.Raw, &request.Object); err != nil {
			return webhook.Answer{}, fmt.Errorf("reading the job: %w", err)
		}
		if raw := asked.OldObject.Raw; raw != nil {
			if err := json.Unmarshal(raw, &request.Old); err != nil {
				return webhook.Answer{}, fmt.Errorf("reading the job before: %w", err)
			}
		}
		return patched(operations(kind, request, asked.Object.Raw)), nil
	}
}

func patched(operations []decision.Operation) webhook.Answer {
	if len(operations) == 0 {
		return webhook.Answer{}
	}
	return webhook.Answer{Patch: operations}
}
