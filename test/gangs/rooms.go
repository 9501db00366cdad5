package gangs

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	helpers "k8s.io/component-helpers/resource"
)

// rooms knows what was free on each node at each version. The zero rooms has no nodes.
type rooms struct {
	nodes     map[string]*room
	occupants map[types.UID]*occupant
}

// room is a node from the time it was first usable.
type room struct {
	usable, gone string
	labels       map[string]string
	allocatable  corev1.ResourceList
}

// occupant is a pod with a node, from its binding to its end.
type occupant struct {
	node         string
	requests     corev1.ResourceList
	bound, ended string
}

func (r *rooms) node(node *corev1.Node) {
	if r.nodes == nil {
		r.nodes = map[string]*room{}
	}
	r.nodes[node.Name] = &room{usable: node.ResourceVersion, labels: node.Labels, allocatable: node.Status.Allocatable}
}

func (r *rooms) nodeGone(node *corev1.Node) {
	if known := r.nodes[node.Name]; known != nil {
		known.gone = node.ResourceVersion
	}
}

func (r *rooms) see(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	if r.occupants == nil {
		r.occupants = map[types.UID]*occupant{}
	}
	o := r.occupants[pod.UID]
	if o == nil {
		o = &occupant{node: pod.Spec.NodeName, requests: requestsOf(&pod.Spec), bound: pod.ResourceVersion}
		r.occupants[pod.UID] = o
	}
	if o.ended == "" && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) {
		o.ended = pod.ResourceVersion
	}
}

func (r *rooms) end(pod *corev1.Pod) {
	if o := r.occupants[pod.UID]; o != nil && o.ended == "" {
		o.ended = pod.ResourceVersion
	}
}

func requestsOf(spec *corev1.PodSpec) corev1.ResourceList {
	return helpers.PodRequests(&corev1.Pod{Spec: *spec}, helpers.PodResourcesOptions{})
}

// free returns what was free on each usable node before the version.
func (r *rooms) free(version string) map[string]corev1.ResourceList {
	free := map[string]corev1.ResourceList{}
	for name, node := range r.nodes {
		if before(node.usable, version) && (node.gone == "" || before(version, node.gone)) {
			free[name] = node.allocatable.DeepCopy()
		}
	}
	for _, o := range r.occupants {
		if there := free[o.node]; there != nil && before(o.bound, version) && (o.ended == "" || before(version, o.ended)) {
			take(there, o.requests)
		}
	}
	return free
}

// fit reports whether there was room for all pods before the version. A pod whose node had no room then is placed on
// any other node: its own may have become free since, and the other full.
func (r *rooms) fit(version string, pods []*pod) bool {
	free := r.free(version)
	var others []*pod
	for _, p := range pods {
		if !place(free[p.node], p) {
			others = append(others, p)
		}
	}
	for _, p := range others {
		placed := false
		for _, name := range slices.Sorted(maps.Keys(free)) {
			if labels.SelectorFromSet(p.spec.NodeSelector).Matches(labels.Set(r.nodes[name].labels)) && place(free[name], p) {
				placed = true
				break
			}
		}
		if !placed {
			return false
		}
	}
	return true
}

// place takes the requests of the pod, if there is room for them.
func place(free corev1.ResourceList, p *pod) bool {
	requests := requestsOf(p.spec)
	for name, amount := range requests {
		if room := free[name]; !amount.IsZero() && room.Cmp(amount) < 0 {
			return false
		}
	}
	take(free, requests)
	return true
}

func take(free, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		if room, has := free[name]; has {
			room.Sub(amount)
			free[name] = room
		}
	}
}
