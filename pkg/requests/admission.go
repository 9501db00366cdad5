package requests

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Cluster provides the data that determines the requests of pods, apart from their templates.
type Cluster interface {
	// RuntimeClass returns a RuntimeClass; found is false if it does not exist, so that no
	// pod with it can be created.
	RuntimeClass(name string) (class *nodev1.RuntimeClass, found bool)
	// LimitRanges returns the LimitRanges of a namespace, sorted by name.
	LimitRanges(namespace string) []*corev1.LimitRange
	// Rules returns the administrator's rules for the requests of pods.
	Rules() Rules
	Claims
}

// Complete returns the cluster for a pod that exists: the API server and webhooks completed the pod when they admitted
// it, and later changes of the cluster do not apply to it.
func Complete(pod *corev1.PodTemplateSpec, cluster Cluster) Cluster {
	return complete{cluster, pod.Spec.Overhead}
}

type complete struct {
	Cluster
	overhead corev1.ResourceList
}

func (complete) LimitRanges(string) []*corev1.LimitRange { return nil }

// RuntimeClass returns a class that changes nothing. Nodes cannot run the pod if the class is gone.
func (c complete) RuntimeClass(name string) (*nodev1.RuntimeClass, bool) {
	_, found := c.Cluster.RuntimeClass(name)
	return &nodev1.RuntimeClass{Overhead: &nodev1.Overhead{PodFixed: c.overhead}}, found
}

func (c complete) Rules() Rules {
	rules := c.Cluster.Rules()
	rules.Additional = nil
	return rules
}

// addDefaults sets the default requests and limits of the namespace in each container.
// If several LimitRanges have a default for one resource, the API server uses any of
// them. The largest is used here, so that no pod requests more than it is charged.
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

// addRuntimeClass sets the overhead of the RuntimeClass in the pod, and adds its node
// selector and tolerations. The pod may set the same overhead itself, but no other.
func addRuntimeClass(pod *corev1.Pod, cluster Cluster) error {
	own := pod.Spec.Overhead
	if pod.Spec.RuntimeClassName == nil {
		if len(own) > 0 {
			return errors.New("the pod sets spec.overhead without a RuntimeClass; remove spec.overhead, or set spec.runtimeClassName")
		}
		return nil
	}
	name := *pod.Spec.RuntimeClassName
	class, found := cluster.RuntimeClass(name)
	if !found {
		return fmt.Errorf("RuntimeClass %q does not exist; set spec.runtimeClassName of the pod to an existing one, or ask an administrator to create it", name)
	}
	overhead := corev1.ResourceList{}
	if class.Overhead != nil {
		overhead = class.Overhead.PodFixed
	}
	if len(own) > 0 && !equality.Semantic.DeepEqual(own, overhead) {
		return fmt.Errorf("spec.overhead of the pod differs from the overhead of RuntimeClass %q; remove spec.overhead", name)
	}
	pod.Spec.Overhead = overhead.DeepCopy()
	roundUp(pod.Spec.Overhead)
	return addScheduling(pod, class)
}

func addScheduling(pod *corev1.Pod, class *nodev1.RuntimeClass) error {
	if class.Scheduling == nil {
		return nil
	}
	for _, label := range sortedKeys(class.Scheduling.NodeSelector) {
		value := class.Scheduling.NodeSelector[label]
		if own, given := pod.Spec.NodeSelector[label]; given && own != value {
			return fmt.Errorf("spec.nodeSelector of the pod has %s=%s, but RuntimeClass %q selects nodes with %s=%s; remove the label from spec.nodeSelector, or use another RuntimeClass",
				label, own, class.Name, label, value)
		}
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[label] = value
	}
	for _, toleration := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(own corev1.Toleration) bool { return equality.Semantic.DeepEqual(own, toleration) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
		}
	}
	return nil
}
