package resourcequota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// CrossesNamespaces reports whether pods of other namespaces have a say in where a pod
// with the affinity is placed: what the scope CrossNamespacePodAffinity is about.
func CrossesNamespaces(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms = append(terms, required...)
		for _, term := range preferred {
			terms = append(terms, term.PodAffinityTerm)
		}
	}
	if near := affinity.PodAffinity; near != nil {
		add(near.RequiredDuringSchedulingIgnoredDuringExecution, near.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if far := affinity.PodAntiAffinity; far != nil {
		add(far.RequiredDuringSchedulingIgnoredDuringExecution, far.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	// A selector of all namespaces is empty, and there all the same.
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
	})
}
