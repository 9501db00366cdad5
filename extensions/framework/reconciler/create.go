package reconciler

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

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
		r.recordRefused(l, err)
		return fmt.Errorf("creating QueueUnit %s/%s: %w", unit.Namespace, unit.Name, err)
	}
	l.unit = created
	r.metrics.Seen(r.kind.Kind)
	r.awaitUnit(l, created.ResourceVersion, nil)
	r.recordWarning(l)
	if l.want.Invalid == "" {
		return nil
	}
	return r.patchUnitStatus(ctx, l, lifecycle.Invalid(l.want.Invalid))
}

// newUnit is the unit of a job that is seen for the first time.
func newUnit(kind schema.GroupVersionKind, l *look) *v1alpha1.QueueUnit {
	spec := l.want.Spec.DeepCopy()
	spec.SubmissionTime = new(submission(l.state.Created, l.now))
	apiVersion, name := kind.ToAPIVersionAndKind()
	spec.ConsumerRef = v1alpha1.ConsumerReference{
		APIVersion: apiVersion, Kind: name, Namespace: l.key.Namespace, Name: l.key.Name, UID: l.job.GetUID(),
	}
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   l.key.Namespace,
			Annotations: arrival.Annotate(l.want.Parameters, l.after),
			Name:        decision.UnitName(kind.Kind, l.key.Name, l.job.GetUID()),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: apiVersion, Kind: name, Name: l.key.Name, UID: l.job.GetUID(), Controller: new(true),
			}},
		},
		Spec: *spec,
	}
}

// submission is a job's place in the order of arrival: when it was seen, within
// the second in which it was created. So it orders jobs more finely than the API
// server's times do, and one seen late, as after a restart, keeps its place.
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
