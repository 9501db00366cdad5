package reconciler

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// createUnit creates the unit of a held job. If the job is invalid, it also writes why, so that an inactive unit
// always has a reason.
func (r *reconciler) createUnit(ctx context.Context, o *observation) (bool, error) {
	created, err := r.create(ctx, o, newUnit(r.servedKind(), o))
	if !created || err != nil || o.desired.Invalid == "" {
		return created, err
	}
	return true, r.patchUnitStatus(ctx, o, lifecycle.Invalid(o.unit, o.desired.Invalid))
}

// create creates a unit of the job. It returns false if the unit exists already; the cache will show it soon. It
// returns an error if its name is taken by a unit that is not the job's.
func (r *reconciler) create(ctx context.Context, o *observation, unit *v1alpha1.QueueUnit) (bool, error) {
	created, err := r.client.QueueUnits(unit.Namespace).Create(ctx, unit, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		live, unread := r.client.QueueUnits(unit.Namespace).Get(ctx, unit.Name, metav1.GetOptions{})
		if unread != nil {
			return false, fmt.Errorf("reading QueueUnit %s/%s: %w", unit.Namespace, unit.Name, unread)
		}
		if kind, job, ours := jobOf(live); ours && kind == r.kind && job == o.key && live.Spec.ConsumerRef.UID == o.job.GetUID() {
			r.memory.await(o.key, o.now, func(a *awaited) { a.unit = version{value: live.ResourceVersion} })
			return false, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("creating QueueUnit %s/%s: %w", unit.Namespace, unit.Name, err)
	}
	o.unit = created
	r.awaitUnit(o, created.ResourceVersion, nil)
	return true, nil
}

// restoreUnit re-creates the unit of a job that was released and runs. The cache of jobs can lag behind that of
// units: only the API server knows that the job still exists and runs. The unit of an invalid job is active, because
// the job must not stop: its pods decide what it is charged.
func (r *reconciler) restoreUnit(ctx context.Context, o *observation) (bool, error) {
	if overtaken, err := r.isOvertaken(ctx, o); overtaken || err != nil {
		return false, err
	}
	unit := newUnit(r.servedKind(), o)
	unit.Annotations = lifecycle.Restored(unit.Annotations, o.state.Released)
	unit.Spec.Active = new(o.state.Active || o.unread != nil)
	elastic, released := decision.ReleasedWith(r.adapter, o.job)
	for i := range unit.Spec.PodSets {
		if set := &unit.Spec.PodSets[i]; set.Name == elastic {
			limit(unit, set, released)
		}
	}
	r.restoreGrowth(o, unit)
	return r.create(ctx, o, unit)
}

// newUnit returns a new unit for the observed job.
func newUnit(kind schema.GroupVersionKind, o *observation) *v1alpha1.QueueUnit {
	spec := o.desired.Spec.DeepCopy()
	spec.SubmissionTime = new(submission(o.state.Created, o.now))
	apiVersion, name := kind.ToAPIVersionAndKind()
	spec.ConsumerRef = v1alpha1.ConsumerReference{
		APIVersion: apiVersion, Kind: name, Namespace: o.key.Namespace, Name: o.key.Name, UID: o.job.GetUID(),
	}
	var owners []metav1.OwnerReference
	if _, grouped := o.job.(*framework.PodGroup); !grouped || kind.Group == "" { // a group of pods is not an API object
		owners = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: name, Name: o.key.Name, UID: o.job.GetUID(), Controller: new(true)}}
	}
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       o.key.Namespace,
			Labels:          map[string]string{wellknown.KindLabel: kind.Kind},
			Annotations:     arrival.Annotate(o.desired.Parameters, o.after),
			Name:            decision.UnitName(kind.Kind, o.key.Name, o.job.GetUID()),
			OwnerReferences: owners,
		},
		Spec: *spec,
	}
}

// submission returns a job's submission time: when it was seen, limited to the second of its creation. It orders jobs
// more finely than the API server's timestamps, and a job that is seen late, for example after a restart, keeps its
// place.
func submission(created, seen time.Time) metav1.MicroTime {
	created = created.Truncate(time.Second)
	latest := created.Add(time.Second - time.Microsecond)
	switch {
	case seen.Before(created):
		seen = created
	case seen.After(latest):
		seen = latest
	}
	return metav1.NewMicroTime(seen.Truncate(time.Microsecond))
}
