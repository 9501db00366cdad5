package decision

import (
	"cmp"
	"fmt"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// Observation is what the framework derives from a job alone: its state and the spec of its unit. Tests of adapters
// compare it.
type Observation struct {
	Job framework.JobState
	// Foreign is the reason why the job is not ours.
	Foreign string
	Marked  bool
	Desired
}

// Observe passes a job to an adapter as the reconciler does, stripped as in the cache. Related is the job's related
// object, if it has one.
func Observe(adapter framework.Adapter, data, related []byte, cluster Cluster) (Observation, error) {
	object, fault, err := decodeJob(adapter, data)
	if err != nil {
		return Observation{}, err
	}
	other, otherFault, err := decodeRelated(adapter, related)
	if err != nil {
		return Observation{}, err
	}
	state := JobStateOf(adapter, object, other)
	return Observation{
		Job: state, Foreign: Foreign(adapter.Kind(), object, state, PartOf(adapter.Kind().GroupKind(), object)), Marked: Marked(adapter.Kind(), object, state),
		Desired: *DesiredOf(adapter, object, other, cluster, cmp.Or(fault, otherFault)),
	}, nil
}

// SuspendPatch returns the adapter's part of the patch that suspends or releases a job.
func SuspendPatch(adapter framework.Adapter, data []byte, suspend bool) (map[string]any, error) {
	object, _, err := decodeJob(adapter, data)
	if err != nil {
		return nil, err
	}
	return adapter.SuspendPatch(object, suspend), nil
}

// Holdable reports whether the operator accepts a job while it is suspended. It is true for a job that
// cannot be decoded.
func Holdable(adapter framework.Adapter, data []byte) bool {
	object, _, err := decodeJob(adapter, data)
	return err != nil || adapter.State(object).Unholdable == ""
}

// decodeJob reads a job, or its readable part; fault is the error about the unreadable part.
func decodeJob(adapter framework.Adapter, data []byte) (object framework.Object, fault, err error) {
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

// ReadAs returns how jobs of a version are decoded into the type of the adapter.
func ReadAs(adapter framework.Adapter, version string) lenient.Kind {
	kind := adapter.Kind()
	return lenient.Kind{GroupVersionKind: kind.GroupKind().WithVersion(version), Resource: kind.Resource,
		New: func() lenient.Object { return adapter.New() }}
}

// Readable returns the readable part of a job, and an error for the unreadable part; nil
// if nothing is readable.
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
