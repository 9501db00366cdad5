package decision

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
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
	condition := apimeta.FindStatusCondition(unit.Status.Conditions, v1alpha1.ConditionEvicted)
	switch {
	case condition == nil || condition.Status != metav1.ConditionTrue:
		return EvictionNone
	case condition.Reason == v1alpha1.EvictedStopped:
		return EvictionStopped
	case condition.Reason == v1alpha1.EvictedSuspendedByUser:
		return EvictionByUser
	case condition.Reason == v1alpha1.EvictedMaximumExecutionTime:
		return EvictionForGood
	default:
		return EvictionAsked
	}
}
