package decision

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/generated/kinds"
)

// parts are the kinds of parts of all kinds.
var parts = kinds.Parts()

// PartOf returns the controller of a job if its operator creates such jobs as parts of its own; nil if the job is
// queued itself. Any user can write the reference, so it does not show that the controller exists.
func PartOf(job schema.GroupKind, object metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(object)
	if owner == nil || object.GetAnnotations()[wellknown.NotPartOfAnnotation] == string(owner.UID) || !IsPart(job, GroupKindOf(owner)) {
		return nil
	}
	return owner
}

// IsPart reports whether the operator of a kind creates jobs of the first kind as parts.
func IsPart(job, of schema.GroupKind) bool {
	return slices.Contains(parts, kinds.Part{Part: job, Of: of})
}

// GroupKindOf returns the kind of an owner.
func GroupKindOf(owner *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
}

// HasParts reports whether jobs of a kind have other jobs as parts.
func HasParts(kind schema.GroupKind) bool {
	return slices.ContainsFunc(parts, func(p kinds.Part) bool { return p.Of == kind })
}

// Foreign returns the reason why a job is not ours to queue: it is a part of another job, or another
// controller starts and stops it. It is empty if the job is ours.
func Foreign(kind framework.Kind, job framework.Object, state framework.JobState, partOf *metav1.OwnerReference) string {
	if job.GetAnnotations()[wellknown.BypassAnnotation] == "true" {
		return fmt.Sprintf("annotation %s takes the job out of the queue", wellknown.BypassAnnotation)
	}
	if _, there := job.GetLabels()[wellknown.KueueLabel]; there {
		return fmt.Sprintf("label %s assigns the job to another queue", wellknown.KueueLabel)
	}
	if state.ManagedBy != "" && state.ManagedBy != kind.ManagedBy {
		return fmt.Sprintf("managedBy assigns the job to %s", state.ManagedBy)
	}
	if partOf != nil {
		return fmt.Sprintf("the job is a part of %s %s", partOf.Kind, partOf.Name)
	}
	return ""
}

// Marked reports whether the job has an opt-in mark. For every kind, an annotation with
// a value other than "true" opts out.
func Marked(kind framework.Kind, job framework.Object, state framework.JobState) bool {
	value, there := job.GetAnnotations()[wellknown.SuspendAnnotation]
	if there {
		return value == "true"
	}
	return kind.MarkedBySuspend && state.Suspended && !state.NoMark
}

// Resumed reports whether a user has unsuspended a released job and it was suspended again.
func Resumed(job framework.Object) bool {
	return job.GetAnnotations()[wellknown.ResumedAnnotation] == "true"
}

// IsApplied reports whether the owner of a cached job sets its mark by server-side apply. The mark then stays as it
// is.
func IsApplied(job framework.Object) bool { return len(job.GetManagedFields()) > 0 }

// managed reports whether the job was created in a managed namespace.
func managed(job framework.Object) bool {
	return job.GetAnnotations()[wellknown.ManagedKey] == "true"
}

// WritesMark reports whether a release and a suspension write the annotation that is the mark of the job.
func WritesMark(kind framework.Kind, job framework.Object) bool {
	_, there := job.GetAnnotations()[wellknown.SuspendAnnotation]
	return (there || !kind.MarkedBySuspend) && !IsApplied(job)
}
