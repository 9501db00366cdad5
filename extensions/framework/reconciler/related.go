package reconciler

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// newRelated returns a client for the objects of Kind.Related, and their cache; nil if the kind has none.
func newRelated(config *rest.Config, adapter framework.Adapter, report lenient.Report) (*lenient.Client, cache.SharedIndexInformer, error) {
	reader, reads := adapter.(framework.RelatedReader)
	if !reads {
		return nil, nil, nil
	}
	kind := adapter.Kind()
	client, err := lenient.NewForConfig(config, decision.ReadRelatedAs(kind.Related, reader))
	if err != nil {
		return nil, nil, err
	}
	slim := func(object framework.Object) { decision.SlimRelated(reader, object) }
	informer, err := lenient.Informer(client, report, kind.Related.Resource, cache.Indexers{}, keepControlled(kind, reader.NewRelated, slim))
	return client, informer, err
}

// relatedChanged queues the job that has the object's name, no matter what controls the object now.
func (r *reconciler) relatedChanged(object metav1.Object) {
	r.enqueue(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
}

// relatedOf returns the object that has the job's name and is controlled by the job, or its readable part with an
// error; nil if there is none. Objects of other names are ignored, because any user can set the controller of an
// object.
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
