package reconciler

import (
	"context"
	"fmt"

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

// scaledSource lists and watches the objects of Kind.Remains as a whole. They are read in
// the same version as the jobs.
type scaledSource struct {
	clients map[string]*lenient.Client
	version func() string
}

// Each lists all objects.
func (s scaledSource) Each(ctx context.Context, namespace string, opts metav1.ListOptions, each func(lenient.Object) error) (metav1.ListMeta, error) {
	return s.clients[s.version()].Each(ctx, namespace, opts, each)
}

// Watch reports their changes.
func (s scaledSource) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	return s.clients[s.version()].Watch(ctx, namespace, opts)
}

// newScaled caches the objects of Kind.Remains with what the adapter reads of them. Of
// objects that no job of the kind controls, only the name is cached.
func newScaled(config *rest.Config, kind framework.Kind, reader framework.ScaledReader, version func() string, report lenient.Report) (cache.SharedIndexInformer, error) {
	source := scaledSource{clients: map[string]*lenient.Client{}, version: version}
	for _, version := range kind.Versions() {
		client, err := lenient.NewForConfig(config, lenient.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: kind.Group, Version: version, Kind: kind.RemainsKind}, Resource: kind.Remains,
			New: func() lenient.Object { return reader.NewScaled() },
		})
		if err != nil {
			return nil, fmt.Errorf("creating a client for %s: %w", kind.Remains, err)
		}
		source.clients[version] = client
	}
	return lenient.Informer(source, report, kind.Remains, cache.Indexers{byController: indexController}, func(obj any) (any, error) {
		object, isObject := obj.(framework.Object)
		if !isObject {
			return obj, nil
		}
		if owner := metav1.GetControllerOf(object); owner == nil || owner.Kind != kind.Kind {
			return placeholder(object, reader.NewScaled()), nil
		}
		object.SetManagedFields(nil)
		if readable, fault := decision.Readable(object); fault == nil {
			reader.SlimScaled(readable)
		}
		return object, nil
	})
}

// scaledOf returns the only object of Kind.Remains that the job controls; nil if there is
// none or several, or if it cannot be read.
func (r *reconciler) scaledOf(job types.UID) framework.Object {
	if _, scales := r.adapter.(framework.ScaledReader); !scales {
		return nil
	}
	// The only error is an index that does not exist.
	objects, _ := r.remains.GetIndexer().ByIndex(byController, string(job))
	if len(objects) != 1 {
		return nil
	}
	object, isObject := objects[0].(framework.Object)
	if !isObject {
		return nil
	}
	if readable, fault := decision.Readable(object); fault == nil {
		return readable
	}
	return nil
}
