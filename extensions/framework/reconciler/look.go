package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/arrival"
)

// look is one look at a job: all that is decided and acted on.
type look struct {
	key   types.NamespacedName
	job   framework.Object
	state decision.State
	// unit is nil when there is none.
	unit *v1alpha1.QueueUnit
	want *decision.Want
	// unread is what cannot be read of the keys that count while the job runs.
	unread error
	now    time.Time
	// after is the unit that one which is created now comes after; empty for none.
	after string
}

// reconcile takes one step with the job of the name, and with what units jobs of
// that name have left behind. It returns when to look again. The turn is over before
// the first request.
func (r *reconciler) reconcile(ctx context.Context, turn *arrival.Turn, key types.NamespacedName, now time.Time) (time.Duration, error) {
	object, exists, err := r.cached.GetIndexer().GetByKey(key.String())
	if err != nil {
		return 0, fmt.Errorf("reading %s from the cache: %w", key, err)
	}
	job, _ := object.(framework.Object)
	if !exists {
		job = nil
	}
	unit, leftovers := r.unitsOf(key, job)
	if unit != nil {
		turn.End() // it has its unit: nobody needs to wait for what is decided about it
	}
	l, decided, fault := r.decide(key, job, unit, now)
	if decided.Action == decision.CreateUnit {
		l.after = turn.Begin(key.Namespace, decision.UnitName(r.kind.Kind, key.Name, l.job.GetUID()))
	} else {
		turn.End()
	}
	after := time.Duration(0)
	if decided.Action == decision.CreateUnit && len(leftovers) > 0 {
		after = retryMin // nothing comes between the begin of a creation and the creation
	} else if after, err = r.clear(ctx, leftovers, now); err != nil {
		return after, err
	}
	switch {
	case fault != nil:
		klog.FromContext(ctx).V(2).Info("The job cannot be read and is left alone", "err", fault)
	case l != nil:
		r.recordQueued(l, decided.Queued)
		r.recordUnreadable(l)
	}
	after = sooner(after, decided.After)
	if decided.Action == decision.Nothing {
		return after, nil
	}
	klog.FromContext(ctx).V(3).Info("Acting", "action", decided.Action)
	return after, r.act(ctx, l, decided.Action)
}

// decide says what to do about a job, by the caches alone. There is nothing to look at
// where the job is gone, or where the caches are behind; the error says why it cannot be
// read at all.
func (r *reconciler) decide(key types.NamespacedName, job framework.Object, unit *v1alpha1.QueueUnit, now time.Time) (*look, decision.Decision, error) {
	if job == nil {
		return nil, decision.Decision{}, nil
	}
	job, fault := decision.Readable(job)
	if job == nil {
		return nil, decision.Decision{}, fault
	}
	if wait := r.behind(key, job, unit, now); wait > 0 {
		return nil, decision.Decision{After: wait}, nil
	}
	l := r.look(key, job, unit, now, fault)
	return l, decision.Decide(l.state, l.unit, l.want, now), nil
}

// unitsOf parts the units of jobs of the name into the job's own, found by the
// name that it must have, and those whose jobs are gone.
func (r *reconciler) unitsOf(key types.NamespacedName, job framework.Object) (own *v1alpha1.QueueUnit, leftovers []*v1alpha1.QueueUnit) {
	for _, unit := range r.units.of(r.kind, key) {
		switch {
		case !r.inMyVersions(unit):
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

// look gathers what Decide is to know. Fault is what cannot be read of the job.
func (r *reconciler) look(key types.NamespacedName, job framework.Object, unit *v1alpha1.QueueUnit, now time.Time, fault error) *look {
	related, relatedFault := r.relatedOf(job)
	kind, sight := r.adapter.Kind(), decision.JobStateOf(r.adapter, job, related)
	_, shows := r.adapter.(framework.QueuingPatcher)
	keys, unread := decision.RunKeysOf(job, unit)
	l := &look{key: key, job: job, unit: unit, unread: unread, now: now, state: decision.State{
		JobState:     sight,
		Foreign:      decision.Foreign(kind, job, sight),
		Marked:       decision.Marked(kind, job, sight),
		Released:     job.GetAnnotations()[wellknown.ReleasedAnnotation],
		RunKeys:      keys,
		Deleting:     job.GetDeletionTimestamp() != nil,
		Incomplete:   r.related != nil && related == nil,
		ShowsQueuing: shows,
		Created:      job.GetCreationTimestamp().Time,
	}}
	waits := unit != nil && (unit.Status.Phase.Waits() || unit.Status.Phase == v1alpha1.PhaseReserved)
	if waits || unit == nil && l.state.Marked && l.state.Foreign == "" {
		l.want = decision.WantOf(r.adapter, job, related, r.cluster, cmp.Or(fault, relatedFault))
	}
	watchRun := unit != nil && unit.Status.Phase == v1alpha1.PhaseDequeued && sight.Running && sight.End == nil
	l.state.RunningSince = r.memory.since(job.GetUID(), isRunning, watchRun, now)
	if l.state.Remains = r.remainOf(job.GetUID()); l.state.Remains != "" {
		l.state.Stopped = false
	}
	l.state.RemainsSince = r.memory.since(job.GetUID(), isRemaining, sight.End != nil && l.state.Remains != "", now)
	return l
}

// sooner is the shorter of two waits of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
