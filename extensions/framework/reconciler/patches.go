package reconciler

import (
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

// guard returns patch metadata that makes the API server reject the patch if the object has changed, or has been
// replaced by another one of the same name.
func guard(object metav1.Object) map[string]any {
	return map[string]any{"resourceVersion": object.GetResourceVersion(), "uid": object.GetUID()}
}

// guardOperations is guard for a JSON Patch. A failed operation "test" would look like an invalid object.
func guardOperations(object metav1.Object) []decision.Operation {
	return []decision.Operation{
		{Op: "replace", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()},
		{Op: "replace", Path: "/metadata/uid", Value: object.GetUID()},
	}
}

// guardedPatch returns a guarded merge patch of a job or a unit.
func guardedPatch(object metav1.Object, annotations, rest map[string]any) ([]byte, error) {
	metadata := guard(object)
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	data, err := json.Marshal(decision.Join(map[string]any{"metadata": metadata}, rest))
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return data, nil
}

// releasePatch clears mark and suspend field and records the attempt. A job that is marked only by its suspend field
// does not get the annotation, and a mark that its owner sets by server-side apply stays. More is what else changes,
// if anything.
func releasePatch(adapter framework.Adapter, kind framework.Kind, job framework.Object, attempt string, more map[string]any) ([]byte, error) {
	annotations := map[string]any{wellknown.ReleasedAnnotation: attempt}
	if decision.WritesMark(kind, job) {
		annotations[wellknown.SuspendAnnotation] = "false"
	}
	if decision.Resumed(job) {
		annotations[wellknown.ResumedAnnotation] = nil
	}
	return guardedPatch(job, annotations, decision.Join(adapter.SuspendPatch(job, false), more))
}

// suspendPatch suspends a job and restores its mark and its number of pods. More are further annotations.
func suspendPatch(adapter framework.Adapter, kind framework.Kind, job framework.Object, more map[string]any) ([]byte, error) {
	annotations := map[string]any{}
	if decision.WritesMark(kind, job) {
		annotations[wellknown.SuspendAnnotation] = "true"
	}
	if decision.Resumed(job) {
		annotations[wellknown.ResumedAnnotation] = nil
	}
	maps.Copy(annotations, more)
	restored, err := decision.Restored(adapter, job)
	if err != nil {
		return nil, err
	}
	return guardedPatch(job, annotations, decision.Join(adapter.SuspendPatch(job, true), restored))
}
