package requests

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// CrossesNamespaces reports whether the affinity of a pod refers to pods of other namespaces, which is
// what the scope CrossNamespacePodAffinity matches.
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
	// A selector of all namespaces is empty but not nil.
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
	})
}

// SlimAffinity returns the part of a pod's affinity that matters for quota: required node affinity, and pod affinity if
// it selects pods of other namespaces, which is rare. It is nil if there is no such part.
func SlimAffinity(affinity *corev1.Affinity) *corev1.Affinity {
	slimmed := corev1.Affinity{}
	if CrossesNamespaces(affinity) {
		slimmed.PodAffinity, slimmed.PodAntiAffinity = affinity.PodAffinity, affinity.PodAntiAffinity
	}
	if affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		slimmed.NodeAffinity = &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		}
	}
	if slimmed == (corev1.Affinity{}) {
		return nil
	}
	return &slimmed
}
