package reconciler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/requests"
)

const (
	// leftAgain is when to check again whether a job that is gone has left pods behind.
	leftAgain = 10 * time.Second
	// leftPage limits the objects of one request.
	leftPage = 100
)

// leftOf returns kind and name of a pod, or of an object that owns pods, that the unit's deleted job has left behind;
// empty for none.
func (r *reconciler) leftOf(ctx context.Context, unit *v1alpha1.QueueUnit, now time.Time) (string, error) {
	if r.gate != nil {
		left, err := r.gate.left(ctx, unit, now)
		return named("Pod", left), err
	}
	kind, job := r.adapter.Kind(), unit.Spec.ConsumerRef
	selector, err := labels.ValidatedSelectorFromSet(labels.Set{kind.PodLabel.Key: kind.PodLabel.Value(job.Name, job.UID)})
	if err != nil {
		return "", nil // no object can have the label
	}
	labelled := metav1.ListOptions{LabelSelector: selector.String()}
	// A label with the name of the job can mean another job of that name, which then controls the object.
	belongs := func(o *metav1.PartialObjectMetadata) bool {
		controller := metav1.GetControllerOfNoCopy(o)
		return controller == nil || controller.UID == job.UID
	}
	if kind.Remains != "" {
		resource := schema.GroupVersionResource{Group: kind.Group, Version: r.jobs.Version(), Resource: kind.Remains}
		left, err := r.first(ctx, resource, unit.Namespace, labelled, belongs)
		if left != "" || err != nil {
			return named(kind.RemainsKind, left), err
		}
	}
	all := kind.PodLabel.IsUID
	if related := kind.Related; !all && related.Resource != "" {
		resource := related.GroupVersion().WithResource(related.Resource)
		sameName := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, job.Name).String()}
		left, err := r.first(ctx, resource, unit.Namespace, sameName, belongs)
		if err != nil {
			return "", err
		}
		all = left != "" // it controls the objects that control the pods
	}
	labelled.FieldSelector = requests.NotEnded
	left, err := r.first(ctx, corev1.SchemeGroupVersion.WithResource("pods"), unit.Namespace, labelled, func(pod *metav1.PartialObjectMetadata) bool {
		return (all || belongs(pod)) && !graceOver(pod, now)
	})
	return named("Pod", left), err
}

// graceOver reports whether the pod's grace period for deletion is over, so that it no longer counts although it may
// still exist on a lost node.
func graceOver(pod metav1.Object, now time.Time) bool {
	left, leaves := graceLeft(pod, now)
	return leaves && left <= 0
}

// graceLeft returns how much is left of the pod's grace period; leaves is whether it is being deleted.
func graceLeft(pod metav1.Object, now time.Time) (left time.Duration, leaves bool) {
	goneAt, leaves := requests.GoneAt(ptr.Deref(pod.GetDeletionTimestamp(), metav1.Time{}).Time, pod.GetDeletionGracePeriodSeconds())
	return goneAt.Sub(now), leaves
}

// firstGraceOver returns when the next pod that is being deleted stops counting; 0 if there is none. If its node is
// lost, no event reports that.
func firstGraceOver[Pod metav1.Object](pods []Pod, now time.Time) (first time.Duration) {
	for _, pod := range pods {
		if left, _ := graceLeft(pod, now); left > 0 {
			first = sooner(first, left)
		}
	}
	return first
}

// first returns the name of the first wanted object; empty if there is none.
func (r *reconciler) first(ctx context.Context, resource schema.GroupVersionResource, namespace string, opts metav1.ListOptions,
	wanted func(*metav1.PartialObjectMetadata) bool) (string, error) {
	opts.Limit = leftPage
	for {
		page, err := r.metadata.Resource(resource).Namespace(namespace).List(ctx, opts)
		if err != nil {
			return "", fmt.Errorf("listing %s in namespace %s: %w", resource.Resource, namespace, err)
		}
		for i := range page.Items {
			if wanted(&page.Items[i]) {
				return page.Items[i].Name, nil
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return "", nil
		}
	}
}

func named(kind, name string) string {
	if name == "" {
		return ""
	}
	return kind + " " + name
}
