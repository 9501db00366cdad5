package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// observation is the state of one job at one time: the input of a decision and an action.
type observation struct {
	key   types.NamespacedName
	job   framework.Object
	state decision.State
	// unit is nil when there is none.
	unit    *v1alpha1.QueueUnit
	desired *decision.Desired
	// partOf is the controller of which the job is a part; nil if it is queued itself.
	partOf *metav1.OwnerReference
	// unread is the error of the unreadable RunKeys, if any.
	unread error
	now    time.Time
	// after is the unit that precedes a unit which is created now; empty for none.
	after string
	// delayed is how long the creation of the unit waits, because the owner of the job changes it again
	// and again.
	delayed time.Duration
	// resized is the part of the patch that releases the job which changes its number of pods.
	resized map[string]any
}

// reconcile takes one step for the job of the name, and for the units that former jobs
// of that name have left behind. It returns when to check again. The turn ends before
// the first request.
func (r *reconciler) reconcile(ctx context.Context, turn *arrival.Turn, key types.NamespacedName, now time.Time) (time.Duration, error) {
	object, exists, err := r.cached.GetIndexer().GetByKey(key.String())
	if err != nil {
		return 0, fmt.Errorf("reading job %s: %w", key, err)
	}
	job, _ := object.(framework.Object)
	if !exists {
		job = nil
	}
	if job, err = r.whole(ctx, turn, key, job); err != nil {
		return 0, err
	}
	unit, leftovers := r.unitsOf(key, job)
	defer r.forgetGone(key, job, leftovers)
	if unit != nil {
		turn.End() // the unit exists, so its place in the order of arrival is known
	}
	o, decided, fault := r.decide(key, job, unit, now)
	if decided.Action == decision.CreateUnit {
		o.after = turn.Begin(key.Namespace, decision.UnitName(r.kind.Kind, key.Name, o.job.GetUID()))
	} else {
		turn.End()
	}
	var after, explained time.Duration
	if decided.Action == decision.CreateUnit && len(leftovers) > 0 {
		after = retryMin // no request may come between turn.Begin and the creation
	} else if after, err = r.clear(ctx, leftovers, now); err != nil {
		return after, err
	}
	switch {
	case fault != nil:
		klog.FromContext(ctx).V(2).Info("Skipped a job that cannot be decoded", "err", fault)
	case o != nil:
		explained = r.explain(ctx, o, decided)
		r.recordNotQueued(o, decided.NotQueued)
		r.recordUnreadable(o)
		r.recordIgnoredKeys(o)
		r.recordOverQuota(o, now)
	}
	after = sooner(sooner(after, decided.After), explained)
	if decided.Action == decision.Nothing {
		if o != nil {
			r.refusedFor(o, nil)
		}
		return after, nil
	}
	klog.FromContext(ctx).V(3).Info("Executing action", "action", decided.Action)
	err = r.act(ctx, o, decided.Action)
	refused := r.refusedFor(o, err)
	if err != nil {
		r.recordRefusal(o, decided.Action, refused, err)
		if decided.Action == decision.Release && refused >= giveBackAfter {
			return after, r.giveBack(ctx, o)
		}
		return after, err
	}
	if answers(decided.Action) {
		r.memory.answered(o.job.GetUID(), now)
	}
	return after, nil
}

// forgetGone forgets a job and units that are gone from the caches. They may have been deleted while
// they were processed, and what is remembered after the event of their deletion would stay forever.
func (r *reconciler) forgetGone(key types.NamespacedName, job framework.Object, leftovers []*v1alpha1.QueueUnit) {
	current, exists, err := r.cached.GetIndexer().GetByKey(key.String())
	if err != nil {
		return // a key never fails
	}
	if !exists {
		r.memory.forgetName(key)
	}
	if now, _ := current.(framework.Object); job != nil && (!exists || now != nil && now.GetUID() != job.GetUID()) {
		r.memory.forgetJob(job.GetUID())
		r.events.Forget(job.GetUID())
	}
	for _, unit := range leftovers {
		if _, exists, err := r.units.GetIndexer().GetByKey(unit.Namespace + "/" + unit.Name); err == nil && !exists {
			r.memory.forgetUnit(unit.UID)
		}
	}
}

// decide returns what to do about a job, from the caches alone. There is no observation
// if the job is gone or the caches are behind. The error is set if the job cannot be
// decoded at all.
func (r *reconciler) decide(key types.NamespacedName, job framework.Object, unit *v1alpha1.QueueUnit, now time.Time) (*observation, decision.Decision, error) {
	if job == nil || isUnmarked(job) {
		return nil, decision.Decision{}, nil
	}
	job, fault := decision.Readable(job)
	if job == nil {
		return nil, decision.Decision{}, fault
	}
	if wait := r.behind(key, job, unit, now); wait > 0 {
		return nil, decision.Decision{After: wait}, nil
	}
	o := r.observe(key, job, unit, now, fault)
	decided := decision.Decide(o.state, o.unit, o.desired, now)
	if wait := r.memory.answerIn(job.GetUID(), now); wait > 0 && canWait(decided.Action, unit) {
		klog.Background().V(3).Info("The job changes again and again; its next action waits", "job", key, "action", decided.Action, "wait", wait)
		if decided.Action == decision.CreateUnit {
			o.delayed = wait
		}
		decided.Action, decided.After = decision.Nothing, sooner(decided.After, wait)
	}
	return o, decided, nil
}

// canWait reports whether an action may come later if the owner of the job changes it again and again.
// The job is suspended in any case, and what is released is what was admitted. Actions that suspend a job,
// release it or move its quota never wait.
func canWait(action decision.Action, unit *v1alpha1.QueueUnit) bool {
	switch action {
	case decision.CreateUnit, decision.ForgetRelease, decision.MarkInvalid, decision.ShowQueuing:
		return true
	case decision.UpdateSpec:
		return !lifecycle.EvictionOf(unit).UnderWay()
	}
	return false
}

// answers reports whether an action answers a change that the owner of the job may repeat. A unit that is
// deleted and created again is counted when it is gone.
func answers(action decision.Action) bool {
	switch action {
	case decision.ForgetRelease, decision.HoldAgain, decision.MarkInvalid, decision.UpdateSpec:
		return true
	}
	return false
}

// unitsOf splits the units of jobs of the name into the job's own unit, found by its
// fixed name, and the units whose jobs are gone.
func (r *reconciler) unitsOf(key types.NamespacedName, job framework.Object) (own *v1alpha1.QueueUnit, leftovers []*v1alpha1.QueueUnit) {
	for _, unit := range r.units.of(r.kind, key) {
		switch {
		case !r.inKindVersions(unit):
		case job == nil || unit.Spec.ConsumerRef.UID != job.GetUID():
			leftovers = append(leftovers, unit)
		case unit.Name == decision.UnitName(r.kind.Kind, job.GetName(), job.GetUID()):
			own = unit
		}
	}
	return own, leftovers
}

func (r *reconciler) behind(key types.NamespacedName, job framework.Object, unit *v1alpha1.QueueUnit, now time.Time) time.Duration {
	if unit == nil {
		return r.memory.behind(key, job.GetResourceVersion(), "", "", now)
	}
	return r.memory.behind(key, job.GetResourceVersion(), unit.ResourceVersion, unit.UID, now)
}

// observe collects the input of decision.Decide. Fault is the error of the unreadable
// part of the job.
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
		Incomplete:   r.related != nil && related == nil,
		ShowsQueuing: shows,
		Created:      job.GetCreationTimestamp().Time,
	}}
	if unit == nil && o.state.Released != "" && o.state.Foreign == "" && r.isChargedToCreator(job) {
		o.state.Foreign = "the job that created it holds quota for it"
	}
	waits := unit != nil && (unit.Status.Phase.Waits() || unit.Status.Phase == v1alpha1.PhaseReserved)
	dequeued := unit != nil && unit.Status.Phase == v1alpha1.PhaseDequeued
	released := dequeued && o.state.Released == decision.Attempt(unit)
	if waits || dequeued && !released || unit == nil && (o.state.Marked || o.state.Released != "") && o.state.Foreign == "" {
		o.desired = decision.DesiredOf(r.adapter, job, related, r.cluster, cmp.Or(fault, relatedFault))
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

// lowered returns the fields in which a released job requests less than was admitted. They
// are computed only if the job has changed since it was last found not to request less.
func (r *reconciler) lowered(o *observation, related framework.Object, fault error) map[string]any {
	if !decision.Follows(o.unit, o.state) {
		r.memory.setMeasured(o.job.GetUID(), "")
		return nil
	}
	versions := o.job.GetResourceVersion()
	scaled := r.scaledOf(o.job.GetUID())
	for _, other := range []framework.Object{related, scaled} {
		if other != nil {
			versions += "/" + other.GetResourceVersion()
		}
	}
	if fault != nil || r.memory.isMeasured(o.job.GetUID(), versions) {
		return nil
	}
	fields := decision.LoweredOf(r.adapter, o.job, related, scaled, r.cluster, o.unit)
	if fields == nil {
		r.memory.setMeasured(o.job.GetUID(), versions)
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
