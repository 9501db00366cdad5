package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
)

// watchStrayQueues reports each Queue outside of the namespace with an event. The policy kube-queue-queues rejects
// new ones, but a Queue may be older than the policy, or the policy may not be installed. Only metadata is read, and
// decisions do not wait for it. Another goroutine calls seen.
func watchStrayQueues(ctx context.Context, config *rest.Config, namespace string, seen func(backend.Notice)) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("watching Queues outside of namespace %s: %w", namespace, err)
	}
	outside := fields.OneTermNotEqualSelector("metadata.namespace", namespace).String()
	informer := metadatainformer.NewFilteredMetadataInformer(client, schedulingv1alpha1.SchemeGroupVersion.WithResource("queues"),
		metav1.NamespaceAll, 0, cache.Indexers{}, func(list *metav1.ListOptions) { list.FieldSelector = outside }).Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if queue, ok := o.(*metav1.PartialObjectMetadata); ok && queue.Namespace != namespace {
			seen(strayQueue(queue, namespace))
		}
	}})
	if err != nil {
		return fmt.Errorf("watching Queues outside of namespace %s: %w", namespace, err)
	}
	go informer.RunWithContext(ctx)
	return nil
}

// strayQueue is the event on a Queue outside of the namespace.
func strayQueue(queue *metav1.PartialObjectMetadata, namespace string) backend.Notice {
	return backend.Notice{About: reference("Queue", queue), Type: corev1.EventTypeWarning, Reason: wellknown.EventIgnoredQueue,
		Message: fmt.Sprintf("This Queue is ignored because only Queues in namespace %s are used. Move its settings to the Queue of the quota group in that namespace, and delete this Queue.", namespace)}
}
