package requests

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

// maxNames is the maximum length of an entry of Size.Unset, the same as in the CRD of
// units.
const maxNames = 256

// computeResources are the resources that a ResourceQuota can require each container to set. They also determine
// whether a pod is BestEffort.
var computeResources = []struct{ resource, request, limit corev1.ResourceName }{
	{corev1.ResourceCPU, corev1.ResourceRequestsCPU, corev1.ResourceLimitsCPU},
	{corev1.ResourceMemory, corev1.ResourceRequestsMemory, corev1.ResourceLimitsMemory},
}

// scopesOf returns the ResourceQuota scopes that the pod matches, except those of its PriorityClass. The pod has its
// defaults.
func scopesOf(pod *corev1.Pod) []corev1.ResourceQuotaScope {
	var scopes []corev1.ResourceQuotaScope
	if bestEffort(pod) {
		scopes = append(scopes, corev1.ResourceQuotaScopeBestEffort)
	}
	if pod.Spec.ActiveDeadlineSeconds != nil {
		scopes = append(scopes, corev1.ResourceQuotaScopeTerminating)
	}
	if CrossesNamespaces(pod.Spec.Affinity) {
		scopes = append(scopes, corev1.ResourceQuotaScopeCrossNamespacePodAffinity)
	}
	return scopes
}

// bestEffort reports whether nothing requests CPU or memory. If the pod has pod-level
// resources, even empty ones, its containers do not count.
func bestEffort(pod *corev1.Pod) bool {
	if whole := pod.Spec.Resources; whole != nil {
		return !requestsCompute(*whole)
	}
	return !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers),
		func(container corev1.Container) bool { return requestsCompute(container.Resources) })
}

func requestsCompute(resources corev1.ResourceRequirements) bool {
	for _, w := range computeResources {
		for _, list := range []corev1.ResourceList{resources.Requests, resources.Limits} {
			if quantity := list[w.resource]; quantity.Sign() > 0 {
				return true
			}
		}
	}
	return false
}

// unsetBy returns, by resource, the names of the containers that do not set it. The pod has its defaults. With
// pod-level resources, containers need not set any.
func unsetBy(pod *corev1.Pod) map[corev1.ResourceName]string {
	if helpers.IsPodLevelResourcesSet(pod) {
		return nil
	}
	containers := map[corev1.ResourceName][]string{}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, w := range computeResources {
			if _, given := container.Resources.Requests[w.resource]; !given {
				containers[w.request] = append(containers[w.request], container.Name)
			}
			if _, given := container.Resources.Limits[w.resource]; !given {
				containers[w.limit] = append(containers[w.limit], container.Name)
			}
		}
	}
	unset := make(map[corev1.ResourceName]string, len(containers))
	for name, names := range containers {
		unset[name] = joinNames(names)
	}
	return unset
}

// joinNames joins as many names as fit, and adds how many more there are.
func joinNames(names []string) string {
	if text := strings.Join(names, ", "); len(text) <= maxNames {
		return text
	}
	room := maxNames - len(more(len(names)))
	count, length := 0, 0
	for _, name := range names {
		if length += len(", ") + len(name); length-len(", ") > room {
			break
		}
		count++
	}
	if count == 0 { // No valid container name is this long.
		return fmt.Sprintf("%d with very long names", len(names))
	}
	return strings.Join(names[:count], ", ") + more(len(names)-count)
}

func more(count int) string { return fmt.Sprintf(" and %d more", count) }
