package jobset

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// templateOf returns the template of the group's pods as a ResourceQuota sees them. If
// each Job has a topology domain of its own, JobSet's webhook sets an affinity to pods of
// all namespaces in the first pod of the Job. All pods of the group count as having it,
// so that no Job is released whose first pod a quota rejects.
func templateOf(set *jobset.JobSet, group *jobset.ReplicatedJob) *corev1.PodTemplateSpec {
	template := &group.Template.Spec.Template
	if !exclusive(set, group) {
		return template
	}
	template = template.DeepCopy()
	template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{NamespaceSelector: &metav1.LabelSelector{}}},
	}}
	return template
}

// exclusive reports whether JobSet places the Jobs of the group in exclusive domains by
// affinity, and not by node labels.
func exclusive(set *jobset.JobSet, group *jobset.ReplicatedJob) bool {
	requested, byLabels := false, false
	for _, annotations := range []map[string]string{set.Annotations, group.Template.Annotations} {
		if _, here := annotations[jobset.ExclusiveKey]; here {
			_, labels := annotations[jobset.NodeSelectorStrategyKey]
			requested, byLabels = true, byLabels || labels
		}
	}
	return requested && !byLabels
}
