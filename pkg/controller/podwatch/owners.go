package podwatch

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// ownerKind is a kind of object between jobs and their pods.
type ownerKind struct {
	schema.GroupVersionResource
	// kind is the kind whose pod label holds the name of the object; empty if there is no such label.
	kind string
	// job is the kind of the job with the same name as the object; empty if there is none.
	job string
	// optional is whether the program can do without watching the objects. exempt is whether their pods serve nodes.
	optional, exempt bool
	informer         cache.SharedIndexInformer
	// absent reports whether the API server does not serve the kind, or does not let us watch it.
	absent func() bool
}

// newOwnerKinds returns Jobs, RayClusters of RayJobs, and JobSets of TrainJobs. A cluster may lack the latter two. If
// the pods of DaemonSets are exempt, it also returns DaemonSets and the namespaces.
func newOwnerKinds(config *rest.Config, strays backend.Strays) (owners []*ownerKind, namespaces *ownerKind, err error) {
	client, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return nil, nil, fmt.Errorf("watching the owners of pods: %w", err)
	}
	kinds := []*ownerKind{
		{GroupVersionResource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}},
		{GroupVersionResource: schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}, kind: "RayCluster"},
		{GroupVersionResource: schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}, job: "TrainJob"},
	}
	all := kinds
	if strays == backend.UnqueuedPods {
		daemonSets := &ownerKind{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, optional: true, exempt: true}
		namespaces = &ownerKind{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, optional: true}
		kinds = append(kinds, daemonSets)
		all = append(kinds, namespaces)
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	for _, kind := range all {
		kind.informer = factory.ForResource(kind.GroupVersionResource).Informer()
		transform := kind.slim
		if kind == namespaces {
			transform = slimNamespace
		}
		if err := kind.informer.SetTransform(transform); err != nil {
			return nil, nil, fmt.Errorf("watching %s: %w", kind.Resource, err)
		}
		if kind.absent, err = follow.Tolerate(kind.informer, kind.isAbsent, kind.reportAbsent); err != nil {
			return nil, nil, fmt.Errorf("watching %s: %w", kind.Resource, err)
		}
	}
	return kinds, namespaces, nil
}

func (k *ownerKind) isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || k.optional && apierrors.IsForbidden(err)
}

func (k *ownerKind) reportAbsent(ctx context.Context, err error) {
	if apierrors.IsNotFound(err) {
		klog.FromContext(ctx).V(3).Info("The kind is not served; trying again later", "kind", k.GroupVersionResource)
		return
	}
	klog.FromContext(ctx).Info("Pods of DaemonSets are charged, because "+k.Resource+" may not be watched", "reason", err.Error())
}

// slim reduces an object to the metadata that is stored. An object without an owner may have lost the job of the same
// name.
func (k *ownerKind) slim(object any) (any, error) {
	if o, is := object.(*metav1.PartialObjectMetadata); is {
		slim := slimOf(o)
		switch {
		case k.exempt: // ignore what it belongs to
			slim.owner, slim.orphan = "", false
		case slim.owner == "":
			slim.owner = codec.LabelOf(k.job, o.Name)
		}
		return &slim, nil
	}
	return object, nil
}

// sameOwner reports whether two versions of an object belong to the same object.
func sameOwner(a, b *slim) bool { return a.owner == b.owner && a.orphan == b.orphan }

func (w *Watch) ownerSeen(kind *ownerKind, o *slim) {
	w.put(func() scheduler.Event {
		return scheduler.OwnerChanged{Namespace: o.Namespace, UID: string(o.UID), Owner: o.owner, Label: codec.LabelOf(kind.kind, o.Name), Exempt: w.exempts(kind, o)}
	})
}

func (w *Watch) ownerGone(kind *ownerKind, o *slim) {
	w.put(func() scheduler.Event {
		return scheduler.OwnerGone{Namespace: o.Namespace, UID: string(o.UID), Label: codec.LabelOf(kind.kind, o.Name)}
	})
}
