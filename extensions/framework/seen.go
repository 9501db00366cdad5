package framework

import (
	"fmt"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/tolerant"
)

// Seen is all that the framework makes of a job by itself: what its unit would
// ask for and what state the job is in. It is how an adapter is tried.
type Seen struct {
	Sight Sight
	// Foreign says why the job is not ours.
	Foreign string
	Marked  bool
	// Spec of the unit, and what is wrong with the job, if anything.
	Spec    v1alpha1.QueueUnitSpec
	Invalid string
}

// Look shows a job to an adapter as the reconciler would, stripped as it is in
// the cache.
func Look(adapter Adapter, data []byte, classes PriorityClasses) (Seen, error) {
	object, err := readAs(adapter).Decode(data)
	if err != nil {
		return Seen{}, err
	}
	if bad, isBad := object.(*tolerant.Unreadable); isBad {
		return Seen{}, fmt.Errorf("reading a %s: %w", adapter.Kind().Kind, bad.Err)
	}
	slim(adapter, object)
	sight := adapter.See(object)
	w := want(adapter, object, classes)
	return Seen{
		Sight: sight, Foreign: foreign(adapter.Kind(), object, sight), Marked: marked(adapter.Kind(), object, sight),
		Spec: w.Spec, Invalid: w.Invalid,
	}, nil
}
