package reconciler

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// byController indexes objects by the UID of their controller.
const byController = "controller"

// remainsSource lists and watches the metadata of the objects of Kind.Remains. They are
// read in the same version as the jobs.
type remainsSource struct {
	client  metadata.Interface
	kind    framework.Kind
	version func() string
}

func (s remainsSource) resource() metadata.Getter {
	return s.client.Resource(schema.GroupVersionResource{Group: s.kind.Group, Version: s.version(), Resource: s.kind.Remains})
}

// List reads them all.
func (s remainsSource) List(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	return s.resource().Namespace(namespace).List(ctx, opts)
}

// Watch reports their changes.
func (s remainsSource) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	return s.resource().Namespace(namespace).Watch(ctx, opts)
}

// newRemains caches the objects of Kind.Remains; nil if the kind has none.
func newRemains(config *rest.Config, client metadata.Interface, adapter framework.Adapter, version func() string, report lenient.Report) (cache.SharedIndexInformer, error) {
	kind := adapter.Kind()
	if kind.Remains == "" {
		return nil, nil
	}
	if reader, scales := adapter.(framework.ScaledReader); scales {
		return newScaled(config, kind, reader, version, report)
	}
	source := remainsSource{client: client, kind: kind, version: version}
	return lenient.InformerOf(source, report, kind.Remains, cache.Indexers{byController: indexController}, slimRemains)
}

func indexController(obj any) ([]string, error) {
	object, isObject := obj.(metav1.Object)
	if !isObject {
		return nil, nil
	}
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

func slimRemains(obj any) (any, error) {
	if object, isObject := obj.(*metav1.PartialObjectMetadata); isObject {
		object.ObjectMeta = metav1.ObjectMeta{
			Name: object.Name, Namespace: object.Namespace, UID: object.UID,
			ResourceVersion: object.ResourceVersion, OwnerReferences: object.OwnerReferences,
		}
	}
	return obj, nil
}

// controlledChanged queues the job that controls the object.
func (r *reconciler) controlledChanged(obj any) {
	object, isObject := obj.(metav1.Object)
	if !isObject {
		return
	}
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == r.kind.Kind {
		key := types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name}
		r.prioritize(key)
		r.queue.Add(key)
	}
}

// relatedChanged queues the job that has the object's name, whoever controls the object
// now.
func (r *reconciler) relatedChanged(obj any) {
	if object, isObject := obj.(metav1.Object); isObject {
		key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		r.prioritize(key)
		r.queue.Add(key)
	}
}

// remainOf returns kind and name of an object that the job still controls; empty for
// none.
func (r *reconciler) remainOf(job types.UID) string {
	if r.remains == nil {
		return ""
	}
	// The only error is an index that does not exist.
	objects, _ := r.remains.GetIndexer().ByIndex(byController, string(job))
	for _, object := range objects {
		if o, isObject := object.(metav1.Object); isObject {
			return r.adapter.Kind().RemainsKind + " " + o.GetName()
		}
	}
	return ""
}
