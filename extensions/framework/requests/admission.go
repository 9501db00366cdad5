package requests

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Cluster is what the cluster adds to pods when they are created.
type Cluster interface {
	// Overhead of the pods of a RuntimeClass; found is false where there is no such
	// class, and no pod of it could be created.
	Overhead(runtimeClass string) (overhead corev1.ResourceList, found bool)
	// LimitRanges of a namespace, in the order of their names.
	LimitRanges(namespace string) []*corev1.LimitRange
}

// addDefaults gives each container the default requests and limits of the
// namespace. Where several LimitRanges have one for the same resource, the API
// server takes either, now this, now that: the largest is taken here, so that no
// pod asks for more than it is charged.
func addDefaults(pod *corev1.Pod, ranges []*corev1.LimitRange) {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for _, limitRange := range ranges {
		for _, item := range limitRange.Spec.Limits {
			if item.Type == corev1.LimitTypeContainer {
				raise(requests, item.DefaultRequest)
				raise(limits, item.Default)
			}
		}
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			resources.Requests = withMissing(resources.Requests, requests)
			resources.Limits = withMissing(resources.Limits, limits)
		}
	}
}

// raise takes the larger of two amounts for each resource.
func raise(list, other corev1.ResourceList) {
	for name, quantity := range other {
		if have, given := list[name]; !given || quantity.Cmp(have) > 0 {
			list[name] = quantity
		}
	}
}

// addOverhead gives the pod the overhead of its RuntimeClass. It may say that
// itself, but nothing else.
func addOverhead(pod *corev1.Pod, cluster Cluster) error {
	own := pod.Spec.Overhead
	if pod.Spec.RuntimeClassName == nil {
		if len(own) > 0 {
			return errors.New("the pod sets an overhead, which only a pod with a RuntimeClass may: remove spec.overhead")
		}
		return nil
	}
	class := *pod.Spec.RuntimeClassName
	overhead, found := cluster.Overhead(class)
	switch {
	case !found:
		return fmt.Errorf("there is no RuntimeClass %q: name another in spec.runtimeClassName, or ask an administrator to create it", class)
	case len(own) > 0 && !equality.Semantic.DeepEqual(own, overhead):
		return fmt.Errorf("the pod sets another overhead than its RuntimeClass %q: remove spec.overhead", class)
	}
	pod.Spec.Overhead = overhead.DeepCopy()
	roundUp(pod.Spec.Overhead)
	return nil
}
