package framework

import (
	"fmt"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
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
	// Warning is what the job's owner should know.
	Warning string
}

// Look shows a job to an adapter as the reconciler would, stripped as it is in
// the cache.
func Look(adapter Adapter, data []byte, cluster Cluster) (Seen, error) {
	object, fault, err := show(adapter, data)
	if err != nil {
		return Seen{}, err
	}
	sight := adapter.See(object)
	w := want(adapter, object, cluster, fault)
	return Seen{
		Sight: sight, Foreign: foreign(adapter.Kind(), object, sight), Marked: marked(adapter.Kind(), object, sight),
		Spec: w.Spec, Invalid: w.Invalid, Warning: w.Warning,
	}, nil
}

// SuspendPatch is the adapter's part of the patch that suspends or releases a job.
func SuspendPatch(adapter Adapter, data []byte, suspend bool) (map[string]any, error) {
	object, _, err := show(adapter, data)
	if err != nil {
		return nil, err
	}
	return adapter.SuspendPatch(object, suspend), nil
}

// show reads a job, or what can be read of it; fault is what cannot.
func show(adapter Adapter, data []byte) (object Object, fault, err error) {
	whole, err := readAs(adapter, adapter.Kind().Version).Decode(data)
	if err != nil {
		return nil, nil, err
	}
	slim(adapter, whole)
	if object, fault = readable(whole); object == nil {
		return nil, nil, fmt.Errorf("reading a %s: %w", adapter.Kind().Kind, fault)
	}
	return object, fault, nil
}
