package reconciler

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// byController indexes objects by the UID of their controller.
const byController = "controller"

// remainsSource lists and watches the objects of Kind.Remains. They are read in the same
// version as the jobs.
type remainsSource struct {
	clients map[string]*lenient.Client
	version func() string
}

func (s remainsSource) Each(ctx context.Context, namespace string, opts metav1.ListOptions, each func(lenient.Object) error) (metav1.ListMeta, error) {
	return s.clients[s.version()].Each(ctx, namespace, opts, each)
}

func (s remainsSource) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	return s.clients[s.version()].Watch(ctx, namespace, opts)
}

// newRemains caches the objects of Kind.Remains; nil if the kind has none.
func newRemains(config *rest.Config, adapter framework.Adapter, version func() string, report lenient.Report) (cache.SharedIndexInformer, error) {
	kind := adapter.Kind()
	reader, reads := adapter.(framework.ScaledReader)
	if !reads {
		return nil, nil
	}
	clients, err := clientsOf(config, kind, func(version string) lenient.Kind {
		return lenient.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: kind.Group, Version: version, Kind: kind.RemainsKind}, Resource: kind.Remains,
			New: func() lenient.Object { return reader.NewScaled() },
		}
	})
	if err != nil {
		return nil, err
	}
	slim := func(object framework.Object) {
		object.SetManagedFields(nil)
		if readable, fault := decision.Readable(object); fault == nil {
			reader.SlimScaled(readable)
		}
	}
	return lenient.Informer(remainsSource{clients, version}, report, kind.Remains, cache.Indexers{byController: indexController},
		keepControlled(kind, reader.NewScaled, slim))
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

// keepControlled returns a transform that slims the objects that jobs of the kind control. It replaces other objects
// with placeholders.
func keepControlled(kind framework.Kind, empty func() framework.Object, slim func(framework.Object)) cache.TransformFunc {
	return func(obj any) (any, error) {
		object, isObject := obj.(framework.Object)
		if !isObject {
			return obj, nil
		}
		if owner := metav1.GetControllerOf(object); owner == nil || owner.Kind != kind.Kind {
			return placeholder(object, empty()), nil
		}
		slim(object)
		return object, nil
	}
}

// placeholder returns an empty object with the name, UID and version of the one that it replaces in the cache.
func placeholder(object, empty framework.Object) framework.Object {
	empty.SetNamespace(object.GetNamespace())
	empty.SetName(object.GetName())
	empty.SetUID(object.GetUID())
	empty.SetResourceVersion(object.GetResourceVersion())
	return empty
}

// controlledChanged queues the job that controls the object.
func (r *reconciler) controlledChanged(object metav1.Object) {
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == r.kind.Kind {
		r.enqueue(types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name})
	}
}

// remaining returns the objects of Kind.Remains that the job controls.
func (r *reconciler) remaining(job types.UID) []framework.Object {
	if r.remains == nil {
		return nil
	}
	// The only error is an index that does not exist.
	found, _ := r.remains.GetIndexer().ByIndex(byController, string(job))
	var objects []framework.Object
	for _, one := range found {
		if object, isObject := one.(framework.Object); isObject {
			objects = append(objects, object)
		}
	}
	return objects
}

// remainOf returns kind and name of an object that the job still controls; empty for
// none.
func (r *reconciler) remainOf(job types.UID) string {
	if objects := r.remaining(job); len(objects) > 0 {
		return r.adapter.Kind().RemainsKind + " " + objects[0].GetName()
	}
	return ""
}

// scaledOf returns the only object of Kind.Remains that the job controls; nil if there is
// none or several, or if it cannot be read.
func (r *reconciler) scaledOf(job types.UID) framework.Object {
	objects := r.remaining(job)
	if len(objects) != 1 {
		return nil
	}
	if readable, fault := decision.Readable(objects[0]); fault == nil {
		return readable
	}
	return nil
}
