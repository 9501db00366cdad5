package reconciler

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// act executes a decision. done is whether a change was written; it can be true even if a later write failed.
func (r *reconciler) act(ctx context.Context, o *observation, action decision.Action) (done bool, err error) {
	if action == decision.Nothing {
		return false, nil
	}
	klog.FromContext(ctx).V(3).Info("Executing action", "action", action)
	now := metav1.NewTime(o.now)
	switch action {
	case decision.CreateUnit:
		return r.createUnit(ctx, o)
	case decision.RestoreUnit:
		return r.restoreUnit(ctx, o)
	case decision.HoldLate:
		return r.holdLate(ctx, o)
	case decision.HoldAgain:
		return r.holdAgain(ctx, o)
	case decision.Resume:
		return r.resume(ctx, o)
	case decision.Release:
		if r.gate != nil {
			return r.open(ctx, o)
		}
		return r.release(ctx, o)
	case decision.LowerPods:
		return r.lowerPods(ctx, o)
	case decision.Evict:
		if r.gate != nil {
			return r.remove(ctx, o)
		}
		var more map[string]any
		if lifecycle.EvictionOf(o.unit) == lifecycle.EvictionForGood {
			more = map[string]any{wellknown.ActiveAnnotation: "false"}
		}
		err = r.suspend(ctx, o, more)
	case decision.ForgetRelease:
		err = r.forgetRelease(ctx, o)
	case decision.LeaveQueue:
		err = r.leaveQueue(ctx, o)
	case decision.UpdateSpec:
		err = r.updateSpec(ctx, o)
	case decision.LowerRequests:
		err = r.patchUnit(ctx, o, "spec", o.state.Lowered, nil)
	case decision.MarkInvalid:
		err = r.patchUnitStatus(ctx, o, lifecycle.Invalid(o.unit, o.desired.Invalid))
	case decision.MarkValid:
		err = r.patchUnitStatus(ctx, o, lifecycle.Valid())
	case decision.ShowQueuing, decision.HideQueuing:
		err = r.showQueuing(ctx, o, action == decision.ShowQueuing)
	case decision.MarkStopped:
		err = r.freeQuota(ctx, o, lifecycle.Stopped(o.unit, now))
	case decision.MarkSuspendedByUser:
		err = r.freeQuota(ctx, o, lifecycle.SuspendedByUser(o.unit, now))
	case decision.MarkChanged:
		err = r.freeQuota(ctx, o, lifecycle.JobChanged(o.unit, now))
	case decision.AcceptChange:
		err = r.patchUnitStatus(ctx, o, lifecycle.ChangeAccepted(o.unit, now))
	case decision.MarkRunning:
		err = r.patchUnitStatus(ctx, o, running(o))
	case decision.MarkPodsReady:
		err = r.patchUnitStatus(ctx, o, lifecycle.PodsReady(o.unit, now))
	case decision.MarkRemains:
		err = r.patchUnitStatus(ctx, o, lifecycle.Remains(o.unit, false, o.state.Remains, now))
	case decision.MarkFinished:
		err = r.finish(ctx, o)
	default:
		err = fmt.Errorf("unknown action %q", action)
	}
	return err == nil, err
}

// running is the status of a unit whose job runs, with condition PodsReady if it is due.
func running(o *observation) lifecycle.Status {
	if decision.PodsReadyIsDue(o.state, o.unit) {
		return lifecycle.RunningAndReady(o.unit, metav1.NewTime(o.now))
	}
	return lifecycle.Running(o.unit, metav1.NewTime(o.now))
}

func (r *reconciler) finish(ctx context.Context, o *observation) error {
	end := o.state.End
	if end == nil {
		return r.finishDeleted(ctx, o)
	}
	return r.patchUnitStatus(ctx, o, lifecycle.Finished(o.unit, end.Succeeded, end.Reason, end.Message, metav1.NewTime(o.now)))
}

// finishDeleted ends the unit of a deleted job that is kept by finalizers, unless pods of it are left.
func (r *reconciler) finishDeleted(ctx context.Context, o *observation) error {
	if r.memory.lookIn(o.unit.UID, o.now, 0) > 0 {
		return nil
	}
	r.memory.look.set(o.unit.UID, o.now.Add(leftAgain))
	live, err := r.jobs.Get(ctx, o.key.Namespace, o.key.Name)
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", r.kind.Kind, o.key, err)
	}
	if live.GetUID() != o.job.GetUID() || live.GetDeletionTimestamp() == nil {
		return nil
	}
	if left, err := r.leftOf(ctx, o.unit, o.now); left != "" || err != nil {
		return err
	}
	message := fmt.Sprintf("the job was deleted, and its pods are gone; its finalizers keep it: %s", strings.Join(live.GetFinalizers(), ", "))
	return r.patchUnitStatus(ctx, o, lifecycle.Finished(o.unit, false, string(wellknown.ReasonJobDeleted), message, metav1.NewTime(o.now)))
}

// suspend suspends the job. More are annotations that it gets.
func (r *reconciler) suspend(ctx context.Context, o *observation, more map[string]any) error {
	data, err := suspendPatch(r.adapter, r.described, o.job, more)
	if err != nil {
		return err
	}
	return r.mergeJob(ctx, o, data)
}

// holdLate suspends a job that was not held. A job with the annotation of a release is a copy only if the API server
// has no unit of it: the cache of units can lag behind that of jobs.
func (r *reconciler) holdLate(ctx context.Context, o *observation) (bool, error) {
	if o.state.Released != "" {
		name := decision.UnitName(r.kind.Kind, o.key.Name, o.job.GetUID())
		live, err := r.client.QueueUnits(o.key.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			r.memory.await(o.key, o.now, func(a *awaited) { a.unit = version{value: live.ResourceVersion} })
			return false, nil
		case !apierrors.IsNotFound(err):
			return false, fmt.Errorf("reading QueueUnit %s/%s: %w", o.key.Namespace, name, err)
		}
	}
	if !r.memory.is(o.job.GetUID(), isMarkedLate) { // the cache may have missed its first version
		if live, err := r.jobs.Get(ctx, o.key.Namespace, o.key.Name); err == nil && isMarkedAfterCreation(live) {
			r.memory.since(o.job.GetUID(), isMarkedLate, true, o.now)
		}
	}
	err := r.suspend(ctx, o, nil)
	return err == nil, err
}

// isMarkedAfterCreation reports whether managedFields show that the annotation was added after the job was created: the
// creator of a job also sets its spec.
func isMarkedAfterCreation(job metav1.Object) bool {
	for _, entry := range job.GetManagedFields() {
		if entry.FieldsV1 == nil || !strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+wellknown.SuspendAnnotation+`"`) {
			continue
		}
		return !strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`) || entry.Time != nil && entry.Time.After(job.GetCreationTimestamp().Time)
	}
	return false
}

// holdAgain suspends a job that a user has unsuspended while it is queued, or its quota is taken back. The cache of
// units can lag behind that of jobs: only the API server knows that kube-queue has not released the job since. If a user
// had suspended the job, the annotation keeps the wish to resume it until the quota is free.
func (r *reconciler) holdAgain(ctx context.Context, o *observation) (bool, error) {
	live, err := r.client.QueueUnits(o.unit.Namespace).Get(ctx, o.unit.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading QueueUnit %s/%s: %w", o.unit.Namespace, o.unit.Name, err)
	}
	phase, eviction := live.Status.Phase, lifecycle.EvictionOf(live)
	if live.UID != o.unit.UID || !phase.Waits() && phase != v1alpha1.PhaseReserved && !eviction.Stopped() {
		r.memory.await(o.key, o.now, func(a *awaited) { a.unit = version{value: live.ResourceVersion} })
		return false, nil
	}
	var more map[string]any
	if eviction == lifecycle.EvictionByUser {
		more = map[string]any{wellknown.ResumedAnnotation: "true"}
	}
	err = r.suspend(ctx, o, more)
	return err == nil, err
}

// freeQuota writes a status that frees the quota of the unit. The cache of jobs can lag behind that of units, for
// example after a failover, and show the job as it was before its release: only the API server knows that the job has
// not changed since.
func (r *reconciler) freeQuota(ctx context.Context, o *observation, status lifecycle.Status) error {
	if overtaken, err := r.isOvertaken(ctx, o); overtaken || err != nil {
		return err
	}
	return r.patchUnitStatus(ctx, o, status)
}

// lowerPods lowers the numbers of pods that the autoscaler of a stopped job has raised. If the API server rejects the
// patch, the quota is freed anyway.
func (r *reconciler) lowerPods(ctx context.Context, o *observation) (bool, error) {
	patch := guardOperations(o.job)
	for _, growth := range o.state.Grown {
		patch = append(patch, decision.Operation{Op: "replace", Path: growth.Field, Value: growth.Admitted})
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return false, fmt.Errorf("encoding a patch of %s: %w", o.key, err)
	}
	err = r.patchJob(ctx, o, types.JSONPatchType, data)
	if refused(err) {
		return false, r.freeQuota(ctx, o, lifecycle.Stopped(o.unit, metav1.NewTime(o.now)))
	}
	return err == nil, err
}

// giveBackAfter is how long the API server must reject the release of a job before its quota is freed.
const giveBackAfter = time.Minute

// giveBack frees the quota of a job that cannot be released. The unit is requeued, and waits longer each time.
func (r *reconciler) giveBack(ctx context.Context, o *observation) error {
	if err := r.freeQuota(ctx, o, lifecycle.NotReleased(o.unit, metav1.NewTime(o.now))); err != nil {
		return err
	}
	r.memory.since(o.job.GetUID(), isRefused, false, o.now)
	return nil
}

// overtaken reports whether the API server has another version of the job than was observed, and awaits that version.
func (r *reconciler) overtaken(o *observation, live metav1.Object) bool {
	if live.GetUID() == o.job.GetUID() && live.GetResourceVersion() == o.job.GetResourceVersion() {
		return false
	}
	r.memory.await(o.key, o.now, func(a *awaited) { a.job = version{value: live.GetResourceVersion()} })
	return true
}

// isOvertaken calls overtaken with the version that the API server has now.
func (r *reconciler) isOvertaken(ctx context.Context, o *observation) (bool, error) {
	live, err := r.jobs.Get(ctx, o.key.Namespace, o.key.Name)
	if err != nil {
		return false, fmt.Errorf("reading %s %s: %w", r.kind.Kind, o.key, err)
	}
	return r.overtaken(o, live), nil
}

// resume requeues the unit first: between the two writes the job is unsuspended while
// its unit waits, and the next reconcile suspends such a job too.
func (r *reconciler) resume(ctx context.Context, o *observation) (bool, error) {
	if err := r.patchUnitStatus(ctx, o, lifecycle.Resumed(o.unit, metav1.NewTime(o.now))); err != nil {
		return false, err
	}
	return true, r.suspend(ctx, o, nil)
}

// leaveQueue deletes the unit, unless it has been admitted in the meantime.
func (r *reconciler) leaveQueue(ctx context.Context, o *observation) error {
	if r.gate != nil && o.unit.Status.Phase.HoldsQuota() { // the cache of pods can lag behind that of units
		if overtaken, err := r.isOvertaken(ctx, o); overtaken || err != nil {
			return err
		}
	}
	err := r.client.QueueUnits(o.unit.Namespace).Delete(ctx, o.unit.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &o.unit.UID, ResourceVersion: &o.unit.ResourceVersion},
	})
	r.awaitUnit(o, "", err)
	if err != nil {
		return fmt.Errorf("deleting QueueUnit %s/%s: %w", o.unit.Namespace, o.unit.Name, err)
	}
	r.memory.await(o.key, o.now, func(a *awaited) { a.deleted = o.unit.UID })
	return nil
}

// forgetRelease removes the annotation of a release that belongs to another unit.
func (r *reconciler) forgetRelease(ctx context.Context, o *observation) error {
	data, err := guardedPatch(o.job, map[string]any{wellknown.ReleasedAnnotation: nil}, nil)
	if err != nil {
		return err
	}
	return r.mergeJob(ctx, o, data)
}

// updateSpec updates the unit's spec; only the RunKeys once the unit is admitted.
func (r *reconciler) updateSpec(ctx context.Context, o *observation) error {
	if phase := o.unit.Status.Phase; o.desired == nil || phase == v1alpha1.PhaseDequeued || phase == v1alpha1.PhaseRunning {
		return r.patchUnit(ctx, o, "spec", o.state.RunKeys.Spec(), nil)
	}
	return r.patchUnit(ctx, o, "spec", o.desired.Changes(o.unit), o.desired.ParameterChanges(o.unit))
}

func (r *reconciler) showQueuing(ctx context.Context, o *observation, queuing bool) error {
	patcher, able := r.adapter.(framework.QueuingPatcher)
	if !able {
		return nil
	}
	data, err := guardedPatch(o.job, nil, patcher.QueuingPatch(o.job, queuing, queuingMessage(o.unit, queuing), o.now))
	if err != nil {
		return err
	}
	return r.mergeJob(ctx, o, data, "status")
}
