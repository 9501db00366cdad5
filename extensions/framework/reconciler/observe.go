package reconciler

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

// observation is the state of one job at one time: the input for a decision and an action.
type observation struct {
	key   types.NamespacedName
	job   framework.Object
	state decision.State
	// unit is nil when there is none.
	unit    *v1alpha1.QueueUnit
	desired *decision.Desired
	// partOf is the controller that the job is a part of; nil if it is queued itself.
	partOf *metav1.OwnerReference
	// unread is the error about unreadable RunKeys, if any.
	unread error
	now    time.Time
	// after is the unit that precedes the unit that is created now; empty for none.
	after string
	// delayed is how long the creation of the unit waits, because the owner of the job changes it repeatedly.
	delayed time.Duration
	// passing are the gated pods of an admitted job that can pass.
	passing []*corev1.Pod
	// resized is the part of the release patch that changes the number of pods.
	resized map[string]any
	// unplaced is why pod sets were released without annotations of admission checks.
	unplaced decision.Unplaced
}

// unitsOf splits the units of jobs of the name into the job's own unit, found by its
// fixed name, those for its growth, and the units whose jobs are gone.
func (r *reconciler) unitsOf(key types.NamespacedName, job framework.Object) (own *v1alpha1.QueueUnit, growth, leftovers []*v1alpha1.QueueUnit) {
	for _, unit := range r.units.of(r.kind, key) {
		switch {
		case !r.inKindVersions(unit):
		case job == nil || unit.Spec.ConsumerRef.UID != job.GetUID():
			leftovers = append(leftovers, unit)
		case unit.Spec.Growth:
			growth = append(growth, unit)
		case unit.Name == decision.UnitName(r.kind.Kind, job.GetName(), job.GetUID()):
			own = unit
		}
	}
	return own, growth, leftovers
}

func (r *reconciler) behind(key types.NamespacedName, job framework.Object, unit *v1alpha1.QueueUnit, now time.Time) time.Duration {
	if unit == nil {
		return r.memory.behind(key, job.GetResourceVersion(), "", "", now)
	}
	return r.memory.behind(key, job.GetResourceVersion(), unit.ResourceVersion, unit.UID, now)
}

// observe collects the input of decision.Decide. Fault is the error about the unreadable part of the job.
func (r *reconciler) observe(key types.NamespacedName, job framework.Object, unit *v1alpha1.QueueUnit, now time.Time, fault error) *observation {
	related, relatedFault := r.relatedOf(job)
	kind, state := r.described, decision.JobStateOf(r.adapter, job, related)
	_, shows := r.adapter.(framework.QueuingPatcher)
	keys, unread := decision.RunKeysOf(job, unit)
	partOf := r.partOf(job, unit)
	o := &observation{key: key, job: job, unit: unit, partOf: partOf, unread: unread, now: now, state: decision.State{
		JobState:     state,
		Foreign:      decision.Foreign(kind, job, state, partOf),
		Marked:       decision.Marked(kind, job, state),
		Resumed:      decision.Resumed(job),
		Released:     job.GetAnnotations()[wellknown.ReleasedAnnotation],
		RunKeys:      keys,
		Deleting:     job.GetDeletionTimestamp() != nil,
		DeletedAt:    ptr.Deref(job.GetDeletionTimestamp(), metav1.Time{}).Time,
		Incomplete:   r.related != nil && related == nil || state.Incomplete,
		ShowsQueuing: shows,
		Created:      job.GetCreationTimestamp().Time,
	}}
	if decision.IsGated(unit) && state.Started && r.admittedAreReady(job, unit) { // further pods may wait
		o.state.Running, o.state.Ready = true, true
	}
	if unit == nil && o.state.Released != "" && o.state.Foreign == "" && r.isChargedToCreator(job) {
		o.state.Foreign = "the job that created it holds quota for it"
	}
	waits := unit != nil && (unit.Status.Phase.Waits() || unit.Status.Phase == v1alpha1.PhaseReserved)
	dequeued := unit != nil && unit.Status.Phase == v1alpha1.PhaseDequeued
	released := dequeued && o.state.Released == decision.Attempt(unit)
	if waits || dequeued && !released || unit == nil && (o.state.Marked || o.state.Released != "") && o.state.Foreign == "" {
		o.desired = decision.DesiredOf(r.adapter, job, related, r.cluster, cmp.Or(fault, relatedFault))
	}
	if gated, is := r.adapter.(framework.GatedPods); is && unit != nil {
		o.passing = gated.Passing(job, decision.Admitted(unit))
		o.state.Passing = len(o.passing)
	}
	if decision.Continues(o.state, unit) {
		o.state.End = nil
	}
	o.state.Lowered = r.lowered(o, related, cmp.Or(fault, relatedFault))
	o.state.Grown = decision.GrownOf(r.adapter, job, unit)
	o.state.ReleasedSince = r.memory.since(job.GetUID(), isReleased, released, now)
	o.state.RunningSince = r.memory.since(job.GetUID(), isRunning, dequeued && state.Running && state.End == nil, now)
	if o.state.Remains = r.remainOf(job.GetUID()); o.state.Remains != "" {
		o.state.Stopped = false
	}
	o.state.RemainsSince = r.memory.since(job.GetUID(), isRemaining, state.End != nil && o.state.Remains != "", now)
	return o
}

// lowered returns the fields in which a released job requests less than was admitted. They are computed only if the
// job has changed since it was last found to request no less.
func (r *reconciler) lowered(o *observation, related framework.Object, fault error) map[string]any {
	if !decision.Follows(o.unit, o.state) || r.gate != nil && r.gate.grouped() { // pods of a group may be replaced
		r.memory.measured.forget(o.job.GetUID())
		return nil
	}
	versions := o.job.GetResourceVersion()
	scaled := r.scaledOf(o.job.GetUID())
	for _, other := range []framework.Object{related, scaled} {
		if other != nil {
			versions += "/" + other.GetResourceVersion()
		}
	}
	if fault != nil || r.memory.measured.get(o.job.GetUID()) == versions {
		return nil
	}
	fields := decision.LoweredOf(r.adapter, o.job, related, scaled, r.cluster, o.unit)
	if fields == nil {
		r.memory.measured.set(o.job.GetUID(), versions)
	}
	return fields
}

// sooner returns the shorter of two waits, where 0 means none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
