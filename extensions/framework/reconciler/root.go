package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

// maxAbove bounds the number of controllers above a job, because references can form cycles.
const maxAbove = 8

// partOf returns the controller that the job is a part of; nil if the job is queued itself. A controller that was
// found not to exist has no parts. A job with a unit does not become a part while its controller is not cached, so
// that its unit is not deleted.
func (r *reconciler) partOf(job framework.Object, unit *v1alpha1.QueueUnit) *metav1.OwnerReference {
	owner := decision.PartOf(r.kind, job)
	if owner == nil || r.sees(job.GetNamespace(), owner) {
		return owner
	}
	if unit != nil || r.memory.lost.get(job.GetUID()) == owner.UID {
		return nil
	}
	return owner
}

// sees reports whether a cache shows that the controller exists.
func (r *reconciler) sees(namespace string, owner *metav1.OwnerReference) bool {
	if r.unitOfOwner(namespace, owner) != nil {
		return true
	}
	for _, other := range r.reconcilers {
		if other.kind != decision.GroupKindOf(owner) {
			continue
		}
		object, _, err := other.cached.GetIndexer().GetByKey(namespace + "/" + owner.Name)
		if found, isObject := object.(metav1.Object); err == nil && isObject && found.GetUID() == owner.UID {
			return true
		}
	}
	return false
}

// unitOfOwner returns the unit of a controller; nil if there is none, or it has ended.
func (r *reconciler) unitOfOwner(namespace string, owner *metav1.OwnerReference) *v1alpha1.QueueUnit {
	for _, unit := range r.units.of(decision.GroupKindOf(owner), types.NamespacedName{Namespace: namespace, Name: owner.Name}) {
		if unit.Spec.ConsumerRef.UID == owner.UID && !unit.Status.Phase.Ended() {
			return unit
		}
	}
	return nil
}

// isChargedToCreator reports whether a job without a unit is left over from another job whose unit keeps its quota:
// the operator of that job copied the annotation of its release.
func (r *reconciler) isChargedToCreator(job framework.Object) bool {
	for _, other := range r.reconcilers {
		name := job.GetLabels()[other.described.PodLabel.Key]
		if name == "" || other.described.PodLabel.IsUID || !decision.IsPart(r.kind, other.kind) {
			continue
		}
		for _, unit := range r.units.of(other.kind, types.NamespacedName{Namespace: job.GetNamespace(), Name: name}) {
			if unit.Status.Phase.HoldsQuota() {
				return true
			}
		}
	}
	return false
}

// holderOf returns the unit of the nearest controller that has one, starting at owner; nil if none has.
func (r *reconciler) holderOf(ctx context.Context, namespace string, owner *metav1.OwnerReference) (*v1alpha1.QueueUnit, error) {
	for range maxAbove {
		if owner == nil {
			break
		}
		if unit := r.unitOfOwner(namespace, owner); unit != nil {
			return unit, nil
		}
		object, _, err := r.find(ctx, namespace, owner)
		if object == nil || err != nil {
			return nil, err
		}
		owner = metav1.GetControllerOf(object)
	}
	return nil, nil
}

// find reads a controller that is a pod or a job; nil if it does not exist. known is false if it was not looked up, or
// if the program may not read it. It lists, because the permissions do not always include get.
func (r *reconciler) find(ctx context.Context, namespace string, owner *metav1.OwnerReference) (object *metav1.PartialObjectMetadata, known bool, err error) {
	kind := decision.GroupKindOf(owner)
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || kind != corev1.SchemeGroupVersion.WithKind("Pod").GroupKind() && !decision.HasParts(kind) && !r.isQueued(kind) {
		return nil, false, nil
	}
	resource := gv.WithResource(strings.ToLower(owner.Kind) + "s") // hack/kinds checks this
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, owner.Name).String(), Limit: 1}
	list, err := r.metadata.Resource(resource).Namespace(namespace).List(ctx, named)
	switch {
	case apierrors.IsForbidden(err):
		return nil, false, nil
	case apierrors.IsNotFound(err):
		return nil, true, nil // no such version is served
	case err != nil:
		return nil, false, fmt.Errorf("reading %s %s/%s: %w", owner.Kind, namespace, owner.Name, err)
	case len(list.Items) == 0 || list.Items[0].UID != owner.UID:
		return nil, true, nil
	}
	return &list.Items[0], true, nil
}

func (r *reconciler) isQueued(kind schema.GroupKind) bool {
	return slices.ContainsFunc(r.reconcilers, func(other *reconciler) bool { return other.kind == kind })
}
