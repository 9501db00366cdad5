package podwatch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// namespace is the part of a namespace that is stored.
type namespace struct {
	slim
	managed bool
}

func slimNamespace(object any) (any, error) {
	if o, is := object.(*metav1.PartialObjectMetadata); is {
		return &namespace{slim: slimOf(o), managed: o.Labels[wellknown.ManagedKey] == "true"}, nil
	}
	return object, nil
}

func sameNamespace(a, b *namespace) bool { return a.managed == b.managed }

// exempts reports whether the object's pods are exempt from charges while they belong to no unit. The object must be an
// existing DaemonSet in a namespace that is not managed. Tenants can create DaemonSets in their namespaces, so pods are
// charged in managed namespaces. The goroutine that decides calls it.
func (w *Watch) exempts(kind *ownerKind, o *slim) bool {
	if !kind.exempt || !w.unmanaged[o.Namespace] {
		return false
	}
	object, _, err := kind.informer.GetStore().GetByKey(o.Namespace + "/" + o.Name)
	stored, is := object.(*slim)
	return err == nil && is && stored.UID == o.UID
}

func (w *Watch) namespaceSeen(n *namespace) { w.setUnmanaged(n.Name, !n.managed) }

func (w *Watch) namespaceGone(n *namespace) { w.setUnmanaged(n.Name, false) }

// setUnmanaged records whether the namespace is known to be unmanaged.
func (w *Watch) setUnmanaged(name string, is bool) {
	w.put(func() scheduler.Event {
		if is {
			w.unmanaged[name] = true
		} else {
			delete(w.unmanaged, name)
		}
		return nil
	})
	for _, kind := range w.kinds {
		if !kind.exempt {
			continue
		}
		inside, err := kind.informer.GetIndexer().ByIndex(cache.NamespaceIndex, name)
		if err != nil {
			continue // informers have this index
		}
		for _, object := range inside {
			if o, is := object.(*slim); is {
				w.ownerSeen(kind, o)
			}
		}
	}
}
