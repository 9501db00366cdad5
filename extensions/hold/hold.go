// Package hold computes how admission changes a job or a pod to hold it. It does the same as the hold policies, from
// the same description of the kind. The webhook of job-extensions uses it where the API server does not serve
// MutatingAdmissionPolicy.
//
// The match conditions of the webhook are those of the policies, so each request here is for a job to hold. A job is
// read as JSON, not as the type of its kind, so that a job that cannot be decoded is held too.
//
// The package is pure: it has no client, no clock and no goroutine.
package hold

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

// Request is a job that is created or updated.
type Request struct {
	// Create: the job is new. Otherwise it is updated, and Old is the job before.
	Create bool
	// Object and Old are jobs as JSON objects. They are not changed.
	Object, Old map[string]any
	// Holdable: the operator accepts the job while it is suspended. Only Managed uses it, because the conditions of
	// the other policies imply it.
	Holdable bool
}

// Kind is a kind of job that can be held.
type Kind struct {
	framework.Kind
	Adapter framework.Adapter
}

// Kinds are the kinds of job that can be held.
type Kinds map[schema.GroupKind][]Kind

// Of returns the kinds of the adapters.
func Of(adapters []framework.Adapter) Kinds {
	kinds := Kinds{}
	for _, adapter := range adapters {
		kind := Kind{adapter.Kind(), adapter}
		kinds[kind.GroupKind()] = append(kinds[kind.GroupKind()], kind)
	}
	return kinds
}

// Find returns a kind in a version. If there are two adapters of a kind, as for MPIJob, it returns the one with the
// version.
func (k Kinds) Find(of schema.GroupVersionKind) (kind Kind, known bool) {
	all := k[of.GroupKind()]
	if len(all) == 0 {
		return Kind{}, false
	}
	at := slices.IndexFunc(all, func(kind Kind) bool { return slices.Contains(kind.Versions(), of.Version) })
	return all[max(at, 0)], true
}

// Marked returns the changes that the hold policy of a kind makes in a marked job.
func Marked(kind framework.Kind, request Request) []decision.Operation {
	annotations := map[string]any{}
	if request.isCopy() {
		annotations[wellknown.ReleasedAnnotation], annotations[wellknown.SuspendAnnotation] = nil, "true"
	}
	if request.resumes(kind) {
		annotations[wellknown.ResumedAnnotation] = "true"
	}
	return operations(request.Object, suspension(kind, request.Object, annotations), annotations)
}

// Managed returns the changes that the policy of managed namespaces makes in a job. fenced means that jobs cannot
// bypass the queue there, so a job that claims to be a part of another one is queued too.
func Managed(kind framework.Kind, request Request, fenced bool) []decision.Operation {
	annotations := map[string]any{wellknown.ManagedKey: "true"}
	if request.isCopy() {
		annotations[wellknown.ReleasedAnnotation] = nil
	}
	if request.resumes(kind) {
		annotations[wellknown.ResumedAnnotation] = "true"
	}
	if mark, there := annotation(request.Object, wellknown.SuspendAnnotation); request.Create || !there || mark == markOf(request.Old) {
		annotations[wellknown.SuspendAnnotation] = "true"
	}
	if owner := controller(request.Object); fenced && owner != "" {
		annotations[wellknown.NotPartOfAnnotation] = owner
	}
	changes := map[string]any{}
	if request.Holdable {
		changes = suspension(kind, request.Object, annotations)
	}
	return operations(request.Object, changes, annotations)
}

// Gate returns the changes that the policies of pods make in a new pod. managed means that its namespace is managed.
func Gate(pod map[string]any, managed bool) []decision.Operation {
	metadata := map[string]any{"labels": map[string]any{wellknown.GatedLabel: "true"}}
	annotations := map[string]any{}
	if managed {
		annotations[wellknown.ManagedKey], annotations[wellknown.SuspendAnnotation] = "true", "true"
	}
	if (Request{Create: true, Object: pod}).isCopy() {
		annotations[wellknown.ReleasedAnnotation] = nil
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	gates, _ := at(pod, []string{"spec", "schedulingGates"}).([]any)
	if !slices.ContainsFunc(gates, func(gate any) bool {
		fields, _ := gate.(map[string]any)
		return fields["name"] == wellknown.PodGate
	}) {
		gates = append(slices.Clone(gates), map[string]any{"name": wellknown.PodGate})
	}
	now := runtime.DeepCopyJSON(pod)
	decision.Merge(now, map[string]any{"metadata": metadata, "spec": map[string]any{"schedulingGates": gates}})
	return decision.OperationsOf(pod, now)
}

// isCopy reports whether the job is a new copy of a released job.
func (r Request) isCopy() bool {
	_, released := annotation(r.Object, wellknown.ReleasedAnnotation)
	return r.Create && released
}

// resumes reports whether the request unsuspends a job that was released before.
func (r Request) resumes(kind framework.Kind) bool {
	_, released := annotation(r.Old, wellknown.ReleasedAnnotation)
	return !r.Create && released && at(r.Object, kind.SuspendPath) != true
}

// operations returns the JSON Patch with the changes and the annotations.
func operations(object, changes, annotations map[string]any) []decision.Operation {
	if len(annotations) > 0 {
		changes["metadata"] = map[string]any{"annotations": annotations}
	}
	now := runtime.DeepCopyJSON(object)
	decision.Merge(now, changes)
	return decision.OperationsOf(object, now)
}

// suspension returns the merge patch that suspends a job, and adds the annotations that record which
// fields it has set.
func suspension(kind framework.Kind, object, annotations map[string]any) map[string]any {
	changes := map[string]any{}
	// An error means that a parent is not a map.
	set := func(path []string, value any) { _ = unstructured.SetNestedField(changes, value, path...) }
	set(kind.SuspendPath, true)
	for _, setting := range kind.Sets {
		if isSet(object, setting) {
			continue
		}
		set(setting.Path, setting.Value)
		if setting.Annotation != "" {
			annotations[setting.Annotation] = "false"
		}
	}
	return changes
}

// isSet reports whether the job itself sets the field to a non-zero value.
func isSet(object map[string]any, setting framework.Setting) bool {
	value := at(object, setting.Path)
	if value == nil && setting.OlderPath != nil {
		value = at(object, setting.OlderPath)
	}
	return value != nil && value != "" && value != false
}

// at returns the value at a path; nil if there is none.
func at(object map[string]any, path []string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return value
}

func annotation(object map[string]any, key string) (value string, there bool) {
	found := at(object, []string{"metadata", "annotations", key})
	value, _ = found.(string)
	return value, found != nil
}

func markOf(object map[string]any) string {
	mark, _ := annotation(object, wellknown.SuspendAnnotation)
	return mark
}

// controller returns the UID of the controller of a job, and "" if it has none.
func controller(object map[string]any) string {
	if owner := metav1.GetControllerOf(&unstructured.Unstructured{Object: object}); owner != nil {
		return string(owner.UID)
	}
	return ""
}
