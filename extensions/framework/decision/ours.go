package decision

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// Foreign says why a job is not ours to queue, or nothing when it is: it belongs
// to a larger job, or somebody else starts and stops it.
func Foreign(kind framework.Kind, job framework.Object, sight framework.JobState) string {
	if _, there := job.GetLabels()[wellknown.KueueLabel]; there {
		return "label " + wellknown.KueueLabel + " gives it to another queue"
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

// Marked reports whether the job asks to be queued. An annotation that is there but
// not "true" says no for every kind.
func Marked(kind framework.Kind, job framework.Object, sight framework.JobState) bool {
	value, there := job.GetAnnotations()[wellknown.SuspendAnnotation]
	if there {
		return value == "true"
	}
	return kind.MarkedBySuspend && sight.Suspended && !sight.NoMark
}

// managed reports whether the job was created in a managed namespace.
func managed(job framework.Object) bool {
	return job.GetAnnotations()[wellknown.ManagedAnnotation] == "true"
}

// Annotated reports whether mark of the job is the annotation, whatever it says now.
func Annotated(kind framework.Kind, job framework.Object) bool {
	_, there := job.GetAnnotations()[wellknown.SuspendAnnotation]
	return there || !kind.MarkedBySuspend
}
