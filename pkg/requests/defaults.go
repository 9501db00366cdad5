package requests

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// decode applies the API server's defaults for decoded pods: a limit without a request
// becomes the request, and amounts are rounded up to thousandths.
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

// decodePodLevel applies the defaults for pod-level resources, if any are set. The sum
// of the containers' requests takes precedence over the limit. Huge pages cannot be
// overcommitted, so their limit always counts.
func decodePodLevel(pod *corev1.Pod) {
	podLevel := pod.Spec.Resources
	if podLevel == nil || len(podLevel.Limits)+len(podLevel.Requests) == 0 {
		return
	}
	limits := helpers.AggregateContainerLimits(pod, helpers.PodResourcesOptions{})
	for name := range limits {
		if _, requested := podLevel.Requests[name]; requested || !isHugePages(name) {
			delete(limits, name)
		}
	}
	podLevel.Limits = withMissing(podLevel.Limits, limits)
	if len(podLevel.Limits) == 0 {
		return
	}
	sum := helpers.AggregateContainerRequests(pod, helpers.PodResourcesOptions{})
	for name := range sum {
		if !helpers.IsSupportedPodLevelResource(name) || isHugePages(name) {
			delete(sum, name)
		}
	}
	podLevel.Requests = withMissing(podLevel.Requests, sum)
	for name, limit := range podLevel.Limits {
		if _, given := podLevel.Requests[name]; !given && helpers.IsSupportedPodLevelResource(name) {
			podLevel.Requests[name] = limit.DeepCopy()
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

// withMissing adds to the list the defaults of resources that it does not contain.
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
