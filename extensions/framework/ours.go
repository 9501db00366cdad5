package framework

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// foreign says why a job is not ours to queue, or nothing when it is: it belongs
// to a larger job, or somebody else starts and stops it.
func foreign(kind Kind, job Object, sight Sight) string {
	if _, there := job.GetLabels()[KueueLabel]; there {
		return "label " + KueueLabel + " gives it to another queue"
	}
	if sight.ManagedBy != "" && sight.ManagedBy != kind.ManagedBy {
		return "managedBy gives it to " + sight.ManagedBy
	}
	owner := metav1.GetControllerOf(job)
	if owner == nil {
		return ""
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err == nil && slices.Contains(kind.Owners, gv.WithKind(owner.Kind).GroupKind()) {
		return ""
	}
	return "it is a part of " + owner.Kind + " " + owner.Name
}

// marked tells whether the job asks to be queued. An annotation that is there but
// not "true" says no for every kind.
func marked(kind Kind, job Object, sight Sight) bool {
	value, there := job.GetAnnotations()[SuspendAnnotation]
	if there {
		return value == "true"
	}
	return kind.MarkedBySuspend && sight.Suspended && !sight.NoMark
}

// managed tells whether the job was created in a managed namespace.
func managed(job Object) bool { return job.GetAnnotations()[ManagedAnnotation] == "true" }

// annotated tells whether mark of the job is the annotation, whatever it says now.
func annotated(kind Kind, job Object) bool {
	_, there := job.GetAnnotations()[SuspendAnnotation]
	return there || !kind.MarkedBySuspend
}
