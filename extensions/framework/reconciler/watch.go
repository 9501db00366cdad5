package reconciler

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// handler calls changed with each new state of an object, gone with its last.
func handler(changed, gone func(obj any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: func(obj any) {
			if last, missed := obj.(cache.DeletedFinalStateUnknown); missed {
				obj = last.Obj
			}
			gone(obj)
		},
	}
}

func (r *reconciler) jobChanged(obj any) {
	if job, isJob := obj.(framework.Object); isJob {
		key := types.NamespacedName{Namespace: job.GetNamespace(), Name: job.GetName()}
		r.hurry(key)
		r.queue.Add(key)
	}
}

func (r *reconciler) jobGone(obj any) {
	if job, isJob := obj.(framework.Object); isJob {
		r.memory.forgetJob(job.GetUID())
		r.events.Forget(job.GetUID())
	}
	r.jobChanged(obj)
}

func (r *reconciler) unitChanged(obj any) {
	unit, isUnit := obj.(*v1alpha1.QueueUnit)
	if !isUnit {
		return
	}
	if kind, job, ours := jobOf(unit); ours && kind == r.kind && r.inMyVersions(unit) {
		r.hurry(job)
		r.queue.Add(job)
	}
}

// hurry has the job looked at before those that are still to be put in line, the next
// time that it is queued, if it holds quota.
func (r *reconciler) hurry(job types.NamespacedName) {
	for _, unit := range r.units.of(r.kind, job) {
		if phase := unit.Status.Phase; !phase.Waits() && !phase.Ended() {
			r.lanes.hurry(job)
		}
	}
}

func (r *reconciler) unitGone(obj any) {
	if unit, isUnit := obj.(*v1alpha1.QueueUnit); isUnit {
		r.memory.forgetUnit(unit.UID)
	}
	r.unitChanged(obj)
}

// inMyVersions reports the units of this kind of job from those of a kind that is
// another one by its version alone, as there are of MPIJob.
func (r *reconciler) inMyVersions(unit *v1alpha1.QueueUnit) bool {
	gv, err := schema.ParseGroupVersion(unit.Spec.ConsumerRef.APIVersion)
	return err == nil && slices.Contains(r.adapter.Kind().Versions(), gv.Version)
}

// clusterChanged looks again at all that wait, in the namespace if one is given:
// what the cluster adds to their pods, or their class, may be another now.
func (r *reconciler) clusterChanged(namespace string) {
	for _, unit := range r.units.ofKind(r.kind) {
		if unit.Status.Phase.Waits() && (namespace == "" || namespace == unit.Namespace) {
			r.unitChanged(unit)
		}
	}
}
