package lifecycle

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Eviction is how far an eviction has come.
type Eviction int

const (
	// EvictionNone: no eviction is under way.
	EvictionNone Eviction = iota
	// EvictionAsked: the controller wants the quota back.
	EvictionAsked
	// EvictionForGood: the same, and the job is not to run again by itself.
	EvictionForGood
	// EvictionStopped: the job's pods are gone.
	EvictionStopped
	// EvictionByUser: the job was suspended by hand, and its pods are gone.
	EvictionByUser
)

// UnderWay reports whether the job is to be stopped, and has not been yet.
func (e Eviction) UnderWay() bool { return e == EvictionAsked || e == EvictionForGood }

// Stopped reports whether the job has stopped, so that its quota may be given back.
func (e Eviction) Stopped() bool { return e == EvictionStopped || e == EvictionByUser }

// EvictionOf reads it from condition Evicted of the unit.
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
	case wellknown.ReasonMaximumExecutionTime:
		return EvictionForGood
	default:
		return EvictionAsked
	}
}

// EvictedOf is condition Evicted of the unit, whatever its status; nil where there is
// none.
func EvictedOf(unit *v1alpha1.QueueUnit) *metav1.Condition {
	return apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionEvicted)
}

// IsResumed reports whether a job that was suspended by hand was unsuspended by hand and
// stands in line again since.
func IsResumed(unit *v1alpha1.QueueUnit) bool {
	condition := EvictedOf(unit)
	return condition != nil && condition.Status == metav1.ConditionFalse && condition.Reason == string(wellknown.ReasonResumed)
}
