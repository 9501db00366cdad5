package decision

import (
	"cmp"
	"fmt"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// Seen is all that the framework makes of a job by itself: what its unit would
// ask for and what state the job is in. It is how an adapter is tried.
type Seen struct {
	Job framework.JobState
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
// the cache. Related is the job's related object, if it has one.
func Look(adapter framework.Adapter, data, related []byte, cluster Cluster) (Seen, error) {
	object, fault, err := show(adapter, data)
	if err != nil {
		return Seen{}, err
	}
	other, otherFault, err := showRelated(adapter, related)
	if err != nil {
		return Seen{}, err
	}
	sight := JobStateOf(adapter, object, other)
	w := WantOf(adapter, object, other, cluster, cmp.Or(fault, otherFault))
	return Seen{
		Job: sight, Foreign: Foreign(adapter.Kind(), object, sight), Marked: Marked(adapter.Kind(), object, sight),
		Spec: w.Spec, Invalid: w.Invalid, Warning: w.Warning,
	}, nil
}

// SuspendPatch is the adapter's part of the patch that suspends or releases a job.
func SuspendPatch(adapter framework.Adapter, data []byte, suspend bool) (map[string]any, error) {
	object, _, err := show(adapter, data)
	if err != nil {
		return nil, err
	}
	return adapter.SuspendPatch(object, suspend), nil
}

// show reads a job, or what can be read of it; fault is what cannot.
func show(adapter framework.Adapter, data []byte) (object framework.Object, fault, err error) {
	whole, err := ReadAs(adapter, adapter.Kind().Version).Decode(data)
	if err != nil {
		return nil, nil, err
	}
	Slim(adapter, whole)
	if object, fault = Readable(whole); object == nil {
		return nil, nil, fmt.Errorf("reading a %s: %w", adapter.Kind().Kind, fault)
	}
	return object, fault, nil
}

// ReadAs has jobs of a version read with the type that their adapter knows.
func ReadAs(adapter framework.Adapter, version string) lenient.Kind {
	kind := adapter.Kind()
	return lenient.Kind{GroupVersionKind: kind.GroupKind().WithVersion(version), Resource: kind.Resource,
		New: func() lenient.Object { return adapter.New() }}
}

// Readable is what can be read of a job, and what cannot; nil when nothing can.
func Readable(job framework.Object) (framework.Object, error) {
	bad, isBad := job.(*lenient.Unreadable)
	switch {
	case !isBad:
		return job, nil
	case bad.Partial == nil:
		return nil, bad.Err
	default:
		return bad.Partial, bad.Err
	}
}
