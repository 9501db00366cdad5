package quotasource

import corev1 "k8s.io/api/core/v1"

// crossesNamespaces tells whether pods of other namespaces have a say in where the pod
// is placed, which the scope CrossNamespacePodAffinity is about.
func crossesNamespaces(affinity *corev1.Affinity) bool {
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
	for _, term := range terms {
		if len(term.Namespaces) > 0 || term.NamespaceSelector != nil {
			return true
		}
	}
	return false
}
