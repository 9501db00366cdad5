package podwatch

import (
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Difference is a difference between an object of the cluster and what the core knows about it.
type Difference struct {
	// Object is kind, namespace and name, or the UID if the name is unknown. Version is its
	// resourceVersion; empty if it does not exist. Problem describes the difference.
	Object, Version, Problem string
	// Heal corrects what the core knows.
	Heal func()
}

// Compare calls visit with each pod and each owner of pods that differs from what is known. An event may still be on
// its way: a difference is real only if it remains while the version does not change. The goroutine that decides calls
// Compare. It takes time proportional to the number of objects.
func (w *Watch) Compare(known pods.View, visit func(Difference)) {
	stored := w.pods.GetStore().List()
	exists := make(map[types.UID]struct{}, len(stored))
	for _, object := range stored {
		seen, is := object.(*pod)
		if !is {
			continue
		}
		exists[seen.UID] = struct{}{}
		current := w.current(seen)
		problem := ""
		if was, counted := known.Known(seen.Namespace, string(seen.UID)); !counted {
			problem = "the pod is not counted"
		} else if !was.Same(&current) {
			problem = "the pod is counted with other requests or another owner"
		}
		if problem != "" {
			visit(Difference{Object: "Pod " + seen.Namespace + "/" + seen.Name, Version: seen.ResourceVersion, Problem: problem,
				Heal: func() { w.podSeen(seen) }})
		}
	}
	known.EachPod(func(p pods.Pod) {
		if _, is := exists[types.UID(p.UID)]; !is {
			visit(Difference{Object: "Pod " + p.Namespace + "/" + p.UID, Problem: "the pod is counted but does not exist", Heal: func() {
				w.put(func() scheduler.Event {
					delete(w.ending.pods, p.UID)
					return scheduler.PodGone{Namespace: p.Namespace, UID: p.UID}
				})
			}})
		}
	})
	for _, kind := range w.kinds {
		for _, object := range kind.informer.GetStore().List() {
			o, is := object.(*slim)
			if is && (o.owner != "" && known.OwnerOf(o.Namespace, string(o.UID)) != o.owner || known.IsExempt(o.Namespace, string(o.UID)) != w.exempts(kind, o)) {
				visit(Difference{Object: kind.Resource + " " + o.Namespace + "/" + o.Name, Version: o.ResourceVersion,
					Problem: "the owner of the object is not known, or whether its pods are charged", Heal: func() { w.ownerSeen(kind, o) }})
			}
		}
	}
}
