package reconciler

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/follow"
)

// jobHandler queues changed jobs, and remembers which of them were marked late.
func (r *reconciler) jobHandler() cache.ResourceEventHandler {
	handler := follow.Handler(r.jobChanged, r.jobGone)
	changed := handler.UpdateFunc
	handler.UpdateFunc = func(was, obj any) {
		before, wasJob := was.(framework.Object)
		job, isJob := obj.(framework.Object)
		if wasJob && isJob && job.GetUID() == before.GetUID() && !isAnnotated(before) && isAnnotated(job) {
			r.memory.since(job.GetUID(), isMarkedLate, true, r.Clock.Now())
		}
		changed(was, obj)
	}
	return handler
}

func isAnnotated(job framework.Object) bool {
	return job.GetAnnotations()[wellknown.SuspendAnnotation] == "true"
}

func (r *reconciler) jobChanged(job framework.Object) {
	key := types.NamespacedName{Namespace: job.GetNamespace(), Name: job.GetName()}
	if isUnmarked(job) {
		// It may have been marked. If it has a unit, the unit or its event triggers the next step.
		r.forgetJob(job.GetUID())
		if len(r.units.of(r.kind, key)) == 0 {
			return
		}
	}
	r.enqueue(key)
}

func (r *reconciler) jobGone(job framework.Object) {
	r.forgetJob(job.GetUID())
	r.jobChanged(job)
}

// forgetJob forgets a job, and stops renewing its event.
func (r *reconciler) forgetJob(job types.UID) {
	r.memory.forgetJob(job)
	r.Events.Forget(job)
}

func (r *reconciler) unitChanged(unit *v1alpha1.QueueUnit) {
	if kind, job, ours := jobOf(unit); ours && kind == r.kind && r.inKindVersions(unit) {
		r.enqueue(job)
	}
}

// enqueue queues a job, in the first lane if it holds quota.
func (r *reconciler) enqueue(job types.NamespacedName) {
	r.prioritize(job)
	r.queue.Add(job)
}

// prioritize makes a job that holds quota enter the first lane when it is next added to the queue.
func (r *reconciler) prioritize(job types.NamespacedName) {
	for _, unit := range r.units.of(r.kind, job) {
		if phase := unit.Status.Phase; !phase.Waits() && !phase.Ended() {
			r.lanes.prioritize(job)
		}
	}
}

func (r *reconciler) unitGone(unit *v1alpha1.QueueUnit) {
	r.memory.look.forget(unit.UID)
	r.memory.grown.forget(unit.UID)
	r.countGone(unit)
	r.unitChanged(unit)
}

// countGone counts a unit that is gone while its job exists: the job left the queue, or the unit was deleted. Users
// can do both repeatedly.
func (r *reconciler) countGone(unit *v1alpha1.QueueUnit) {
	kind, key, ours := jobOf(unit)
	if !ours || kind != r.kind || !r.inKindVersions(unit) || unit.Spec.Growth {
		return
	}
	object, exists, err := r.cached.GetIndexer().GetByKey(key.String())
	if job, isJob := object.(framework.Object); err == nil && exists && isJob && job.GetUID() == unit.Spec.ConsumerRef.UID {
		r.memory.answered(job.GetUID(), r.Clock.Now())
	} else if r.gate != nil { // the next job of the name has the UID of another pod
		r.forgetJob(unit.Spec.ConsumerRef.UID)
	}
}

// inKindVersions reports whether the unit belongs to this kind in one of its versions.
// MPIJob is two kinds that differ only in their versions.
func (r *reconciler) inKindVersions(unit *v1alpha1.QueueUnit) bool {
	gv, err := schema.ParseGroupVersion(unit.Spec.ConsumerRef.APIVersion)
	return err == nil && slices.Contains(r.adapter.Kind().Versions(), gv.Version)
}

// clusterChanged queues all waiting jobs, of the namespace if one is given, because their priority or the defaults of
// their pods may have changed.
func (r *reconciler) clusterChanged(namespace string) {
	for _, unit := range r.units.ofKind(r.kind) {
		if unit.Status.Phase.Waits() && (namespace == "" || namespace == unit.Namespace) {
			r.unitChanged(unit)
		}
	}
}
