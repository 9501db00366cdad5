package jobset

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// templateOf is the template of the group's pods as a ResourceQuota sees them. Where
// each Job has a domain of nodes to itself, JobSet's webhook gives its first pod an
// affinity to pods of all namespaces. All pods of the group count as having it, lest
// Jobs be released whose first pods a quota refuses.
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

// exclusive: JobSet sees to it by affinity, and not by labels of nodes.
func exclusive(set *jobset.JobSet, group *jobset.ReplicatedJob) bool {
	asked, byLabels := false, false
	for _, annotations := range []map[string]string{set.Annotations, group.Template.Annotations} {
		if _, here := annotations[jobset.ExclusiveKey]; here {
			_, labels := annotations[jobset.NodeSelectorStrategyKey]
			asked, byLabels = true, byLabels || labels
		}
	}
	return asked && !byLabels
}
