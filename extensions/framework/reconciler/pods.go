package reconciler

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// ErrNotEnabled means that the kind of the unit's job is not enabled, and ErrNoJob that a user created the unit
// without a job.
var (
	ErrNotEnabled = errors.New("the kind of job is not enabled")
	ErrNoJob      = errors.New("the unit was created by hand")
)

// Units returns the cache of all units. Its objects are shared, and lack unused fields.
func (f *Framework) Units() cache.SharedIndexInformer { return f.units }

// Cluster returns the data that determines the requests of pods, apart from their templates.
func (f *Framework) Cluster() requests.Cluster { return f.cluster }

// PodsOf returns the pod sets of a unit's job as the API server has it now, because the templates of cached jobs are
// incomplete. If the job is gone, the error is NotFound.
func (f *Framework) PodsOf(ctx context.Context, unit *v1alpha1.QueueUnit) ([]framework.PodSet, error) {
	kind, job, ours := jobOf(unit)
	if !ours {
		return nil, ErrNoJob
	}
	for _, r := range f.reconcilers {
		if r.kind == kind && r.inKindVersions(unit) {
			object, err := r.liveJob(ctx, job.Namespace, job.Name)
			if err != nil {
				return nil, err
			}
			if object.GetUID() != unit.Spec.ConsumerRef.UID {
				return nil, apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: r.adapter.Kind().Resource}, job.Name)
			}
			return r.livePods(ctx, object)
		}
	}
	return nil, ErrNotEnabled
}

// liveJob reads a job from the API server, not from the cache.
func (r *reconciler) liveJob(ctx context.Context, namespace, name string) (framework.Object, error) {
	live, err := r.jobs.Get(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", r.kind.Kind, namespace, name, err)
	}
	job, fault := decision.Readable(live)
	if fault != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", r.kind.Kind, namespace, name, fault)
	}
	return job, nil
}

// livePods returns the pod sets of a job, which can be described in its related object.
func (r *reconciler) livePods(ctx context.Context, job framework.Object) ([]framework.PodSet, error) {
	related, err := r.liveRelated(ctx, job)
	if err != nil {
		return nil, err
	}
	pods, err := decision.Pods(r.adapter, job, related)
	if err != nil {
		return nil, fmt.Errorf("reading the pods of %s %s/%s: %w", r.kind.Kind, job.GetNamespace(), job.GetName(), err)
	}
	return pods.Sets, nil
}

// liveRelated reads the related object of a job from the API server; nil if there is none. It lists the objects with
// that name, because the program is allowed to list them but not to get one.
func (r *reconciler) liveRelated(ctx context.Context, job framework.Object) (found framework.Object, err error) {
	if r.relatedLive == nil {
		return nil, nil
	}
	kind := r.adapter.Kind().Related
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, job.GetName()).String()}
	_, err = r.relatedLive.Each(ctx, job.GetNamespace(), options, func(object lenient.Object) error {
		owner := metav1.GetControllerOf(object)
		if object.GetName() != job.GetName() || owner == nil || owner.UID != job.GetUID() {
			return nil
		}
		var fault error
		found, fault = decision.ReadableRelated(kind, object)
		return fault
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", kind.Kind, job.GetNamespace(), job.GetName(), err)
	}
	return found, nil
}
