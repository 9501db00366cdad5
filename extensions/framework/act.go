package framework

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// act carries out a decision. What tells of a write comes after the write.
func (r *reconciler) act(ctx context.Context, l *look, action Action) error {
	switch action {
	case CreateUnit:
		return r.createUnit(ctx, l)
	case ForgetRelease:
		return r.forgetRelease(ctx, l)
	case HoldLate, Evict:
		return r.suspend(ctx, l, action)
	case HoldAgain:
		return r.holdAgain(ctx, l)
	case Resume:
		return r.resume(ctx, l)
	case LeaveQueue:
		return r.leaveQueue(ctx, l)
	case UpdateSpec:
		return r.updateSpec(ctx, l)
	case MarkInvalid:
		return r.patchUnitStatus(ctx, l, invalidStatus(l.want.Invalid))
	case ShowQueuing, HideQueuing:
		return r.showQueuing(ctx, l, action == ShowQueuing)
	case Release:
		return r.release(ctx, l)
	case MarkStopped:
		return r.patchUnitStatus(ctx, l, stoppedStatus(l.unit, metav1.NewTime(l.now)))
	case MarkSuspendedByUser:
		return r.patchUnitStatus(ctx, l, evictedStatus(l.unit, metav1.ConditionTrue, v1alpha1.EvictedSuspendedByUser,
			"The job was suspended by hand; unsuspend it to put it back in line.", metav1.NewTime(l.now)))
	case MarkRunning:
		return r.patchUnitStatus(ctx, l, map[string]any{"phase": v1alpha1.PhaseRunning})
	case MarkRemains:
		return r.patchUnitStatus(ctx, l, remainsStatus(l.state.Remains))
	case MarkFinished:
		return r.finish(ctx, l)
	}
	return fmt.Errorf("nobody knows how to do %q", action)
}

// release clears mark and suspend field in one patch.
func (r *reconciler) release(ctx context.Context, l *look) error {
	data, err := releasePatch(r.adapter, l.job, attempt(l.unit))
	if err != nil {
		return err
	}
	if err := r.patchJob(ctx, l, data); err != nil {
		return err
	}
	if decided := l.unit.Status.DequeueTime; decided != nil {
		r.metrics.Released(r.kind.Kind, r.clock.Since(decided.Time))
	}
	r.tellReleased(l)
	return nil
}

func (r *reconciler) finish(ctx context.Context, l *look) error {
	if err := r.patchUnitStatus(ctx, l, finishedStatus(l.unit, l.state.End, metav1.NewTime(l.now))); err != nil {
		return err
	}
	r.metrics.Finished(r.kind.Kind, l.state.End.Succeeded)
	return nil
}

// suspend holds a job that was not held, or no longer may run.
func (r *reconciler) suspend(ctx context.Context, l *look, why Action) error {
	forGood := why == Evict && evictionOf(l.unit) == evictionForGood
	data, err := suspendPatch(r.adapter, l.job, forGood)
	if err != nil {
		return err
	}
	if err := r.patchJob(ctx, l, data); err != nil {
		return err
	}
	r.tellSuspended(l, why)
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
	return r.suspend(ctx, l, HoldAgain)
}

// resume puts the unit back in line first: between the two writes the job is one
// that was unsuspended while it waits, which is put right again too.
func (r *reconciler) resume(ctx context.Context, l *look) error {
	err := r.patchUnitStatus(ctx, l, evictedStatus(l.unit, metav1.ConditionFalse, ReasonResumed,
		"The job was unsuspended by hand and stands in line again.", metav1.NewTime(l.now)))
	if err != nil {
		return err
	}
	r.tellResumed(l)
	return r.suspend(ctx, l, Resume)
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
	r.tellLeft(l)
	return nil
}

// forgetRelease removes what the job says of a release that was never its own.
func (r *reconciler) forgetRelease(ctx context.Context, l *look) error {
	data, err := jobPatch(l.job, map[string]any{ReleasedAnnotation: nil}, nil)
	if err != nil {
		return err
	}
	return r.patchJob(ctx, l, data)
}

// updateSpec brings the unit in step. Once it is admitted only runKeys count.
func (r *reconciler) updateSpec(ctx context.Context, l *look) error {
	if l.want == nil {
		return r.patchUnit(ctx, l, "spec", l.state.runKeys.spec(), nil)
	}
	return r.patchUnit(ctx, l, "spec", l.want.changes(l.unit), l.want.parameterChanges(l.unit))
}

func (r *reconciler) showQueuing(ctx context.Context, l *look, queuing bool) error {
	shower, able := r.adapter.(QueuingShower)
	if !able {
		return nil
	}
	data, err := jobPatch(l.job, nil, shower.QueuingPatch(l.job, queuing, queuingMessage(l.unit, queuing), l.now))
	if err != nil {
		return err
	}
	return r.patchJob(ctx, l, data, "status")
}

func (r *reconciler) patchUnitStatus(ctx context.Context, l *look, fields map[string]any) error {
	return r.patchUnit(ctx, l, "status", fields, nil)
}

// patchUnit patches spec or status, and with a spec annotations.
func (r *reconciler) patchUnit(ctx context.Context, l *look, part string, fields, annotations map[string]any) error {
	data, err := unitPatch(l.unit, part, fields, annotations)
	if err != nil {
		return err
	}
	var subresources []string
	if part != "spec" {
		subresources = append(subresources, part)
	}
	patched, err := r.client.QueueUnits(l.unit.Namespace).Patch(ctx, l.unit.Name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	if err != nil {
		r.awaitUnit(l, "", err)
		return fmt.Errorf("patching the %s of QueueUnit %s/%s: %w", part, l.unit.Namespace, l.unit.Name, err)
	}
	r.awaitUnit(l, patched.ResourceVersion, nil)
	return nil
}

// patchJob patches the job and awaits what came of it.
func (r *reconciler) patchJob(ctx context.Context, l *look, data []byte, subresources ...string) error {
	version := ""
	patched, err := r.jobs.Patch(ctx, l.key.Namespace, l.key.Name, data, subresources...)
	if err == nil {
		version = patched.GetResourceVersion()
	}
	r.memory.await(l.key, l.now, func(a *awaited) {
		a.job = after(l.job.GetResourceVersion(), version, err, a.job)
	})
	if err != nil {
		return fmt.Errorf("patching %s %s: %w", r.kind.Kind, l.key, err)
	}
	return nil
}

// awaitUnit awaits what came of a write on the unit.
func (r *reconciler) awaitUnit(l *look, written string, err error) {
	r.memory.await(l.key, l.now, func(a *awaited) {
		a.unit = after(l.unit.ResourceVersion, written, err, a.unit)
	})
}

// after is the version to await after a write on one that was seen: the one that
// came of it or, when there was a newer one, that.
func after(seen, written string, err error, before version) version {
	switch {
	case err == nil && written != "":
		return version{value: written}
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return version{value: seen, pass: true}
	default:
		return before
	}
}

// createUnit makes the unit of a held job. What is wrong with the job is said at
// once, so that nobody wonders about an inactive unit.
func (r *reconciler) createUnit(ctx context.Context, l *look) error {
	unit := newUnit(r.kindNow(), l)
	created, err := r.client.QueueUnits(unit.Namespace).Create(ctx, unit, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// Made by us a moment ago: the cache is about to show it.
		r.memory.await(l.key, l.now, func(a *awaited) { a.unit = version{value: "1"} })
		return nil
	}
	if err != nil {
		r.tellRefused(l, err)
		return fmt.Errorf("creating QueueUnit %s/%s: %w", unit.Namespace, unit.Name, err)
	}
	l.unit = created
	r.metrics.Seen(r.kind.Kind)
	r.awaitUnit(l, created.ResourceVersion, nil)
	r.tellWarning(l)
	if l.want.Invalid == "" {
		return nil
	}
	return r.patchUnitStatus(ctx, l, invalidStatus(l.want.Invalid))
}

// newUnit is the unit of a job that is seen for the first time.
func newUnit(kind schema.GroupVersionKind, l *look) *v1alpha1.QueueUnit {
	spec := l.want.Spec.DeepCopy()
	spec.SubmissionTime = new(submission(l.state.Created, l.now))
	apiVersion, name := kind.ToAPIVersionAndKind()
	spec.ConsumerRef = v1alpha1.ConsumerReference{
		APIVersion: apiVersion, Kind: name, Namespace: l.key.Namespace, Name: l.key.Name, UID: l.job.GetUID(),
	}
	annotations := l.want.Parameters
	if l.after != "" {
		annotations = maps.Clone(annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.AfterAnnotation] = l.after
	}
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   l.key.Namespace,
			Annotations: annotations,
			Name:        UnitName(kind.Kind, l.key.Name, l.job.GetUID()),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: apiVersion, Kind: name, Name: l.key.Name, UID: l.job.GetUID(), Controller: new(true),
			}},
		},
		Spec: *spec,
	}
}
