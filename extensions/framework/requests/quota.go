package requests

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
)

// maxNames is how long the names of containers in Size.Unset may be together, as
// the CRD of units has it.
const maxNames = 256

// weighed are the resources of which a ResourceQuota demands that each container
// says something, and those that decide whether a pod is of BestEffort.
var weighed = []struct{ resource, request, limit corev1.ResourceName }{
	{corev1.ResourceCPU, corev1.ResourceRequestsCPU, corev1.ResourceLimitsCPU},
	{corev1.ResourceMemory, corev1.ResourceRequestsMemory, corev1.ResourceLimitsMemory},
}

// scopesOf are the scopes of a ResourceQuota that the pod, with its defaults,
// matches. Those of its PriorityClass are not among them.
func scopesOf(pod *corev1.Pod) []corev1.ResourceQuotaScope {
	var scopes []corev1.ResourceQuotaScope
	if bestEffort(pod) {
		scopes = append(scopes, corev1.ResourceQuotaScopeBestEffort)
	}
	if pod.Spec.ActiveDeadlineSeconds != nil {
		scopes = append(scopes, corev1.ResourceQuotaScopeTerminating)
	}
	if resourcequota.CrossesNamespaces(pod.Spec.Affinity) {
		scopes = append(scopes, corev1.ResourceQuotaScopeCrossNamespacePodAffinity)
	}
	return scopes
}

// bestEffort: nothing asks for CPU or memory. Where the pod says something as a
// whole, be it nothing, its containers do not count.
func bestEffort(pod *corev1.Pod) bool {
	if whole := pod.Spec.Resources; whole != nil {
		return !computes(*whole)
	}
	return !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers),
		func(container corev1.Container) bool { return computes(container.Resources) })
}

func computes(resources corev1.ResourceRequirements) bool {
	for _, w := range weighed {
		for _, list := range []corev1.ResourceList{resources.Requests, resources.Limits} {
			if quantity := list[w.resource]; quantity.Sign() > 0 {
				return true
			}
		}
	}
	return false
}

// unsetBy names the containers of the pod, with its defaults, that say nothing of
// a resource. Where the pod says something as a whole, nobody asks its containers.
func unsetBy(pod *corev1.Pod) map[corev1.ResourceName]string {
	if helpers.IsPodLevelResourcesSet(pod) {
		return nil
	}
	silent := map[corev1.ResourceName][]string{}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, w := range weighed {
			if _, given := container.Resources.Requests[w.resource]; !given {
				silent[w.request] = append(silent[w.request], container.Name)
			}
			if _, given := container.Resources.Limits[w.resource]; !given {
				silent[w.limit] = append(silent[w.limit], container.Name)
			}
		}
	}
	unset := make(map[corev1.ResourceName]string, len(silent))
	for name, containers := range silent {
		unset[name] = joined(containers)
	}
	return unset
}

// joined are the names, as many as there is room for, and how many more there are.
func joined(names []string) string {
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
	if count == 0 { // No container may have a name as long as this.
		return fmt.Sprintf("%d with names too long to be said", len(names))
	}
	return strings.Join(names[:count], ", ") + more(len(names)-count)
}

func more(count int) string { return fmt.Sprintf(" and %d more", count) }
