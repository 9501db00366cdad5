package jobset

import jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

// exclusive reports whether JobSet gives each Job of the group its own topology domain, by affinity and not by node
// labels. JobSet's webhook then adds an affinity to pods of all namespaces to the first pod of each Job. All pods of
// the group count as having it, so that no Job is released if a ResourceQuota rejects its first pod.
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
