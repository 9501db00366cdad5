package reconciler

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

const (
	// collectorGrace is time for the garbage collector, which deletes most units.
	collectorGrace = 2 * time.Second
	// unservedRetry is when to check units of a removed kind again.
	unservedRetry = time.Minute
)

// clear deletes units of deleted jobs that nothing else deletes: the deletion of a job can orphan them. It keeps a
// unit while pods of its job are left. It returns when to check again.
func (r *reconciler) clear(ctx context.Context, leftovers []*v1alpha1.QueueUnit, now time.Time) (time.Duration, error) {
	var after time.Duration
	for _, unit := range leftovers {
		if unit.DeletionTimestamp != nil && unit.Status.Phase.Ended() {
			continue
		}
		if wait := r.memory.lookIn(unit.UID, now, collectorGrace); wait > 0 {
			after = sooner(after, wait)
			continue
		}
		wait, err := r.clearOne(ctx, unit, now)
		if err != nil {
			return 0, err
		}
		after = sooner(after, wait)
	}
	return after, nil
}

// clearOne deletes the unit if the API server itself reports that its job is gone and that no pod of it is left. If
// the unit is being deleted but kept by a finalizer, it ends the unit, which would otherwise hold its quota until the
// finalizer is removed.
func (r *reconciler) clearOne(ctx context.Context, unit *v1alpha1.QueueUnit, now time.Time) (time.Duration, error) {
	ref := unit.Spec.ConsumerRef
	job, err := r.jobs.Get(ctx, unit.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err) && unserved(err):
		return unservedRetry, nil
	case err != nil && !apierrors.IsNotFound(err):
		return 0, fmt.Errorf("reading %s %s/%s: %w", ref.Kind, unit.Namespace, ref.Name, err)
	case err == nil && job.GetUID() == ref.UID:
		return catchUp, nil
	case unit.DeletionTimestamp != nil:
		if _, err := r.sendUnit(ctx, unit, "status", lifecycle.Finished(unit, false, string(wellknown.ReasonJobDeleted), "the job was deleted", metav1.NewTime(now)), nil); err != nil {
			return 0, err
		}
		r.memory.look.set(unit.UID, now.Add(leftAgain))
		return leftAgain, nil
	}
	if unit.Status.Phase.HoldsQuota() {
		left, err := r.leftOf(ctx, unit, now)
		if err != nil {
			return 0, err
		}
		if left != "" {
			return leftAgain, r.keep(ctx, unit, left, now)
		}
	}
	err = r.client.QueueUnits(unit.Namespace).Delete(ctx, unit.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &unit.UID},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return 0, fmt.Errorf("deleting QueueUnit %s/%s, whose job is gone: %w", unit.Namespace, unit.Name, err)
	}
	klog.FromContext(ctx).Info("Deleted a unit whose job is gone", "unit", klog.KObj(unit), "uid", ref.UID)
	return 0, nil
}

// keep reports once, on a unit whose job is gone, what the job has left behind.
func (r *reconciler) keep(ctx context.Context, unit *v1alpha1.QueueUnit, left string, now time.Time) error {
	if unit.Status.Phase != v1alpha1.PhaseRunning || unit.Status.Reason != wellknown.ReasonPodsRemain {
		if _, err := r.sendUnit(ctx, unit, "status", lifecycle.Remains(unit, true, left, metav1.NewTime(now)), nil); err != nil {
			return err
		}
		klog.FromContext(ctx).Info("Kept a unit whose job is gone", "unit", klog.KObj(unit), "uid", unit.Spec.ConsumerRef.UID, "left", left)
	}
	r.memory.look.set(unit.UID, now.Add(leftAgain))
	return nil
}

// unserved reports whether the kind is not served, as opposed to a missing object.
func unserved(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
