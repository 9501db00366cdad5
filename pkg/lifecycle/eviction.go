package lifecycle

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Eviction is the progress of an eviction.
type Eviction int

const (
	// EvictionNone means that no eviction is in progress.
	EvictionNone Eviction = iota
	// EvictionAsked means that the controller has requested the eviction.
	EvictionAsked
	// EvictionForGood means the same, and that the job must not run again automatically.
	EvictionForGood
	// EvictionStopped means that the pods of the job are gone.
	EvictionStopped
	// EvictionByUser means that a user suspended the job and that its pods are gone.
	EvictionByUser
	// EvictionChanged means that the job changed between its admission and its release. It was
	// not released.
	EvictionChanged
)

// UnderWay reports whether the job must be stopped and has not stopped yet.
func (e Eviction) UnderWay() bool { return e == EvictionAsked || e == EvictionForGood }

// Stopped reports whether the job has stopped, so that its quota can be freed.
func (e Eviction) Stopped() bool {
	return e == EvictionStopped || e == EvictionByUser || e == EvictionChanged
}

// EvictionOf reads the progress of an eviction from the condition Evicted of the unit.
func EvictionOf(unit *v1alpha1.QueueUnit) Eviction {
	condition := EvictedOf(unit)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return EvictionNone
	}
	switch wellknown.Reason(condition.Reason) {
	case wellknown.ReasonStopped:
		return EvictionStopped
	case wellknown.ReasonSuspendedByUser:
		return EvictionByUser
	case wellknown.ReasonJobChanged:
		return EvictionChanged
	case wellknown.ReasonMaximumExecutionTime:
		return EvictionForGood
	default:
		return EvictionAsked
	}
}

// EvictedOf returns the condition Evicted of the unit, with any status, or nil if there is none.
func EvictedOf(unit *v1alpha1.QueueUnit) *metav1.Condition {
	return apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionEvicted)
}

// IsResumed reports whether a user suspended and unsuspended the job, and it is queued again.
func IsResumed(unit *v1alpha1.QueueUnit) bool {
	condition := EvictedOf(unit)
	return condition != nil && condition.Status == metav1.ConditionFalse && condition.Reason == string(wellknown.ReasonResumed)
}
