package requests

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

// limitsToRequests does what the API server does to a pod when it is created:
// where a limit stands without a request, the limit is the request.
func limitsToRequests(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			resources.Requests = withMissing(resources.Requests, resources.Limits)
		}
	}
	if pod.Spec.Resources == nil || len(pod.Spec.Resources.Limits) == 0 {
		return
	}
	// At pod level, the sum of what containers ask for comes before the limit.
	// Huge pages cannot be promised twice, so for them the limit always counts.
	sum := helpers.AggregateContainerRequests(pod, helpers.PodResourcesOptions{})
	for name := range sum {
		if !helpers.IsSupportedPodLevelResource(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			delete(sum, name)
		}
	}
	podRequests := withMissing(pod.Spec.Resources.Requests, sum)
	for name, limit := range pod.Spec.Resources.Limits {
		if _, given := podRequests[name]; !given && helpers.IsSupportedPodLevelResource(name) {
			podRequests[name] = limit
		}
	}
	pod.Spec.Resources.Requests = podRequests
}

// withMissing adds to the list what only the defaults name.
func withMissing(list, defaults corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		list = make(corev1.ResourceList, len(defaults))
	}
	for name, quantity := range defaults {
		if _, given := list[name]; !given {
			list[name] = quantity
		}
	}
	return list
}
