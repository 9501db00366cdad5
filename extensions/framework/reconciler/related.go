package reconciler

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// newRelated caches the objects of Kind.Related; nil if the kind has none. Of objects
// that no job of the kind controls, only the name is cached.
func newRelated(config *rest.Config, adapter framework.Adapter, report lenient.Report) (cache.SharedIndexInformer, error) {
	reader, reads := adapter.(framework.RelatedReader)
	if !reads {
		return nil, nil
	}
	kind := adapter.Kind()
	client, err := newRelatedClient(config, adapter)
	if err != nil {
		return nil, err
	}
	return lenient.Informer(client, report, kind.Related.Resource, cache.Indexers{}, func(obj any) (any, error) {
		object, isObject := obj.(framework.Object)
		if !isObject {
			return obj, nil
		}
		if owner := metav1.GetControllerOf(object); owner == nil || owner.Kind != kind.Kind {
			return placeholder(object, reader.NewRelated()), nil
		}
		decision.SlimRelated(reader, object)
		return object, nil
	})
}

// newRelatedClient returns a client for the objects of Kind.Related; nil if the kind has none.
func newRelatedClient(config *rest.Config, adapter framework.Adapter) (*lenient.Client, error) {
	reader, reads := adapter.(framework.RelatedReader)
	if !reads {
		return nil, nil
	}
	kind := adapter.Kind().Related
	client, err := lenient.NewForConfig(config, decision.ReadRelatedAs(kind, reader))
	if err != nil {
		return nil, fmt.Errorf("creating a client for %s: %w", kind.Resource, err)
	}
	return client, nil
}

// placeholder returns an empty object that replaces another one in the cache.
func placeholder(object, empty framework.Object) framework.Object {
	empty.SetNamespace(object.GetNamespace())
	empty.SetName(object.GetName())
	empty.SetUID(object.GetUID())
	empty.SetResourceVersion(object.GetResourceVersion())
	return empty
}

// relatedOf returns the object of the job's name that the job controls, or its readable
// part with an error; nil if there is none. Objects of other names are ignored, because
// any user can set the controller of an object.
func (r *reconciler) relatedOf(job framework.Object) (framework.Object, error) {
	if r.related == nil {
		return nil, nil
	}
	key := cache.ObjectName{Namespace: job.GetNamespace(), Name: job.GetName()}.String()
	found, _, err := r.related.GetIndexer().GetByKey(key)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", r.adapter.Kind().Related.Kind, key, err)
	}
	object, isObject := found.(framework.Object)
	if !isObject {
		return nil, nil
	}
	if owner := metav1.GetControllerOf(object); owner == nil || owner.UID != job.GetUID() {
		return nil, nil
	}
	return decision.ReadableRelated(r.adapter.Kind().Related, object)
}
