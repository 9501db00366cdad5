package reconciler

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// act carries out a decision. What reports a write comes after the write.
func (r *reconciler) act(ctx context.Context, l *look, action decision.Action) error {
	switch action {
	case decision.CreateUnit:
		return r.createUnit(ctx, l)
	case decision.ForgetRelease:
		return r.forgetRelease(ctx, l)
	case decision.HoldLate, decision.Evict:
		return r.suspend(ctx, l, action)
	case decision.HoldAgain:
		return r.holdAgain(ctx, l)
	case decision.Resume:
		return r.resume(ctx, l)
	case decision.LeaveQueue:
		return r.leaveQueue(ctx, l)
	case decision.UpdateSpec:
		return r.updateSpec(ctx, l)
	case decision.MarkInvalid:
		return r.patchUnitStatus(ctx, l, lifecycle.Invalid(l.want.Invalid))
	case decision.ShowQueuing, decision.HideQueuing:
		return r.showQueuing(ctx, l, action == decision.ShowQueuing)
	case decision.Release:
		return r.release(ctx, l)
	case decision.MarkStopped:
		return r.patchUnitStatus(ctx, l, lifecycle.Stopped(l.unit, metav1.NewTime(l.now)))
	case decision.MarkSuspendedByUser:
		return r.patchUnitStatus(ctx, l, lifecycle.SuspendedByUser(l.unit, metav1.NewTime(l.now)))
	case decision.MarkRunning:
		return r.patchUnitStatus(ctx, l, lifecycle.Running(l.unit))
	case decision.MarkRemains:
		return r.patchUnitStatus(ctx, l, lifecycle.Remains(l.unit, l.state.Remains))
	case decision.MarkFinished:
		return r.finish(ctx, l)
	}
	return fmt.Errorf("nobody knows how to do %q", action)
}

// release clears mark and suspend field in one patch.
func (r *reconciler) release(ctx context.Context, l *look) error {
	data, err := releasePatch(r.adapter, l.job, decision.Attempt(l.unit))
	if err != nil {
		return err
	}
	if err := r.patchJob(ctx, l, data); err != nil {
		return err
	}
	if decided := l.unit.Status.DequeueTime; decided != nil {
		r.metrics.Released(r.kind.Kind, r.clock.Since(decided.Time))
	}
	r.recordReleased(l)
	return nil
}

func (r *reconciler) finish(ctx context.Context, l *look) error {
	end := l.state.End
	status := lifecycle.Finished(l.unit, end.Succeeded, end.Reason, end.Message, metav1.NewTime(l.now))
	if err := r.patchUnitStatus(ctx, l, status); err != nil {
		return err
	}
	r.metrics.Finished(r.kind.Kind, end.Succeeded)
	return nil
}

// suspend holds a job that was not held, or no longer may run.
func (r *reconciler) suspend(ctx context.Context, l *look, why decision.Action) error {
	forGood := why == decision.Evict && lifecycle.EvictionOf(l.unit) == lifecycle.EvictionForGood
	data, err := suspendPatch(r.adapter, l.job, forGood)
	if err != nil {
		return err
	}
	if err := r.patchJob(ctx, l, data); err != nil {
		return err
	}
	r.recordSuspended(l, why)
	return nil
}

// holdAgain suspends a queued job that somebody has unsuspended. The cache of
// units may lag behind that of jobs: only the API server knows that the unit
// still waits, and that it was not we who released the job.
func (r *reconciler) holdAgain(ctx context.Context, l *look) error {
	live, err := r.client.QueueUnits(l.unit.Namespace).Get(ctx, l.unit.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading QueueUnit %s/%s: %w", l.unit.Namespace, l.unit.Name, err)
	}
	phase := live.Status.Phase
	if live.UID != l.unit.UID || !phase.Waits() && phase != v1alpha1.PhaseReserved {
		r.memory.await(l.key, l.now, func(a *awaited) { a.unit = version{value: live.ResourceVersion} })
		return nil
	}
	return r.suspend(ctx, l, decision.HoldAgain)
}

// resume puts the unit back in line first: between the two writes the job is one
// that was unsuspended while it waits, which is put right again too.
func (r *reconciler) resume(ctx context.Context, l *look) error {
	err := r.patchUnitStatus(ctx, l, lifecycle.Resumed(l.unit, metav1.NewTime(l.now)))
	if err != nil {
		return err
	}
	r.recordResumed(l)
	return r.suspend(ctx, l, decision.Resume)
}

// leaveQueue deletes the unit, unless it was admitted meanwhile.
func (r *reconciler) leaveQueue(ctx context.Context, l *look) error {
	err := r.client.QueueUnits(l.unit.Namespace).Delete(ctx, l.unit.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &l.unit.UID, ResourceVersion: &l.unit.ResourceVersion},
	})
	r.awaitUnit(l, "", err)
	if err != nil {
		return fmt.Errorf("deleting QueueUnit %s/%s: %w", l.unit.Namespace, l.unit.Name, err)
	}
	r.memory.await(l.key, l.now, func(a *awaited) { a.deleted = l.unit.UID })
	r.recordLeft(l)
	return nil
}

// forgetRelease removes what the job says of a release that was never its own.
func (r *reconciler) forgetRelease(ctx context.Context, l *look) error {
	data, err := jobPatch(l.job, map[string]any{wellknown.ReleasedAnnotation: nil}, nil)
	if err != nil {
		return err
	}
	return r.patchJob(ctx, l, data)
}

// updateSpec brings the unit in step. Once it is admitted only RunKeys count.
func (r *reconciler) updateSpec(ctx context.Context, l *look) error {
	if l.want == nil {
		return r.patchUnit(ctx, l, "spec", l.state.RunKeys.Spec(), nil)
	}
	return r.patchUnit(ctx, l, "spec", l.want.Changes(l.unit), l.want.ParameterChanges(l.unit))
}

func (r *reconciler) showQueuing(ctx context.Context, l *look, queuing bool) error {
	shower, able := r.adapter.(framework.QueuingPatcher)
	if !able {
		return nil
	}
	data, err := jobPatch(l.job, nil, shower.QueuingPatch(l.job, queuing, queuingMessage(l.unit, queuing), l.now))
	if err != nil {
		return err
	}
	return r.patchJob(ctx, l, data, "status")
}
