package decision

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
	// EvictionByUser: the job was suspended by hand.
	EvictionByUser
)

// EvictionOf reads it from condition Evicted of the unit.
func EvictionOf(unit *v1alpha1.QueueUnit) Eviction {
	condition := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionEvicted)
	switch {
	case condition == nil || condition.Status != metav1.ConditionTrue:
		return EvictionNone
	case wellknown.Reason(condition.Reason) == wellknown.ReasonStopped:
		return EvictionStopped
	case wellknown.Reason(condition.Reason) == wellknown.ReasonSuspendedByUser:
		return EvictionByUser
	case wellknown.Reason(condition.Reason) == wellknown.ReasonMaximumExecutionTime:
		return EvictionForGood
	default:
		return EvictionAsked
	}
}
