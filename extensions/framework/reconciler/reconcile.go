package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// reconcile takes one step for the job with the name: it observes the job in the caches, decides, acts, and records
// what the owner of the job must know. It also clears the units that former jobs of the name have left behind. It
// returns when to check again. The turn ends before the first request.
func (r *reconciler) reconcile(ctx context.Context, turn *arrival.Turn, key types.NamespacedName, now time.Time) (time.Duration, error) {
	job, err := r.jobOf(ctx, turn, key)
	if err != nil {
		return 0, err
	}
	unit, growth, leftovers := r.unitsOf(key, job)
	defer r.forgetGone(key, job, leftovers)
	if unit != nil {
		turn.End() // the unit exists, so its place in the order of arrival is known
	}
	o, decided, fault := r.decide(key, job, unit, now)
	if fault != nil {
		klog.FromContext(ctx).V(2).Info("Skipped a job that cannot be decoded", "err", fault)
	}
	var after time.Duration
	var uncleared error
	creates := decided.Action == decision.CreateUnit
	if creates {
		o.after = turn.Begin(key.Namespace, decision.UnitName(r.kind.Kind, key.Name, o.job.GetUID()))
	} else {
		turn.End()
	}
	if creates && len(leftovers) > 0 {
		after = retryMin // there must be no request between turn.Begin and the creation
	} else {
		after, uncleared = r.clear(ctx, leftovers, now)
	}
	after = sooner(after, decided.After)
	if o == nil {
		return after, uncleared
	}
	if group, is := o.job.(*framework.PodGroup); is {
		after = sooner(after, firstGraceOver(group.Pods, now))
	}
	done, err := r.act(ctx, o, decided.Action)
	if creates && err != nil { // they may use up a quota on the number of units
		turn.End()
		_, uncleared = r.clear(ctx, leftovers, now)
	}
	explained, err := r.record(ctx, o, decided, done, err)
	if err == nil && decided.Action == decision.Nothing {
		var grown time.Duration
		grown, err = r.grow(ctx, o, growth)
		r.recordGrowthRefusal(o, err)
		after = sooner(after, grown)
	}
	return sooner(after, explained), cmp.Or(err, uncleared)
}

// jobOf returns the job with the name; nil if there is none.
func (r *reconciler) jobOf(ctx context.Context, turn *arrival.Turn, key types.NamespacedName) (framework.Object, error) {
	object, exists, err := r.cached.GetIndexer().GetByKey(key.String())
	if err != nil {
		return nil, fmt.Errorf("reading job %s: %w", key, err)
	}
	job, _ := object.(framework.Object)
	if !exists {
		job = nil
	}
	return r.whole(ctx, turn, key, job)
}

// forgetGone forgets a job and units that are gone from the caches. They may have been deleted while they were
// processed, and facts that are remembered after their deletion event would stay forever.
func (r *reconciler) forgetGone(key types.NamespacedName, job framework.Object, leftovers []*v1alpha1.QueueUnit) {
	current, exists, err := r.cached.GetIndexer().GetByKey(key.String())
	if err != nil {
		return // this never happens for a key
	}
	if !exists {
		r.memory.awaited.forget(key)
	}
	if now, _ := current.(framework.Object); job != nil && (!exists || now != nil && now.GetUID() != job.GetUID()) {
		r.forgetJob(job.GetUID())
	}
	for _, unit := range leftovers {
		if _, exists, err := r.units.GetIndexer().GetByKey(unit.Namespace + "/" + unit.Name); err == nil && !exists {
			r.memory.look.forget(unit.UID)
		}
	}
}

// decide returns what to do about a job. It uses only the caches. There is no observation if the job is gone or the
// caches are behind. The error is set if the job cannot be decoded at all.
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
	if decided.Action == decision.RestoreUnit && r.grows() && !r.pods.HasSynced() { // they decide what it is charged
		return nil, decision.Decision{After: time.Second}, nil
	}
	if wait := r.memory.answerIn(job.GetUID(), now); wait > 0 && canWait(decided.Action, unit) {
		klog.Background().V(3).Info("The job changes again and again; its next action waits", "job", key, "action", decided.Action, "wait", wait)
		if unit == nil {
			o.delayed = wait
		}
		decided.Action, decided.After = decision.Nothing, sooner(decided.After, wait)
	}
	return o, decided, nil
}

// canWait reports whether an action can wait if the owner of the job changes it repeatedly. The job stays suspended,
// and only what was admitted is released. Actions that suspend a job, release it or move its quota never wait.
func canWait(action decision.Action, unit *v1alpha1.QueueUnit) bool {
	switch action {
	case decision.CreateUnit, decision.ForgetRelease, decision.MarkInvalid, decision.MarkValid, decision.ShowQueuing:
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
	case decision.ForgetRelease, decision.HoldAgain, decision.MarkInvalid, decision.MarkValid, decision.UpdateSpec:
		return true
	}
	return false
}
