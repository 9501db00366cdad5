package requests

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// decode does what the API server does to a pod when it reads it: where a limit
// stands without a request, the limit is the request; and amounts are rounded up
// to thousandths.
func decode(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			resources.Requests = withMissing(resources.Requests, resources.Limits)
		}
	}
	decodePodLevel(pod)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			roundUp(containers[i].Resources.Requests)
			roundUp(containers[i].Resources.Limits)
		}
	}
	roundUp(pod.Spec.Overhead)
	if pod.Spec.Resources != nil {
		roundUp(pod.Spec.Resources.Requests)
		roundUp(pod.Spec.Resources.Limits)
	}
}

// decodePodLevel fills in what the pod as a whole asks for, where it says some of
// it. The sum of what containers ask for comes before the limit. Huge pages cannot
// be promised twice, so for them the limit always counts.
func decodePodLevel(pod *corev1.Pod) {
	whole := pod.Spec.Resources
	if whole == nil || len(whole.Limits)+len(whole.Requests) == 0 {
		return
	}
	limits := helpers.AggregateContainerLimits(pod, helpers.PodResourcesOptions{})
	for name := range limits {
		if _, requested := whole.Requests[name]; requested || !isHugePages(name) {
			delete(limits, name)
		}
	}
	whole.Limits = withMissing(whole.Limits, limits)
	if len(whole.Limits) == 0 {
		return
	}
	sum := helpers.AggregateContainerRequests(pod, helpers.PodResourcesOptions{})
	for name := range sum {
		if !helpers.IsSupportedPodLevelResource(name) || isHugePages(name) {
			delete(sum, name)
		}
	}
	whole.Requests = withMissing(whole.Requests, sum)
	for name, limit := range whole.Limits {
		if _, given := whole.Requests[name]; !given && helpers.IsSupportedPodLevelResource(name) {
			whole.Requests[name] = limit.DeepCopy()
		}
	}
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

// withMissing adds to the list what only the defaults name.
func withMissing(list, defaults corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		list = make(corev1.ResourceList, len(defaults))
	}
	for name, quantity := range defaults {
		if _, given := list[name]; !given {
			list[name] = quantity.DeepCopy()
		}
	}
	return list
}
