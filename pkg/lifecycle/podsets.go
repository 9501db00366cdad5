package lifecycle

import (
	"fmt"
	"slices"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// AdmittedWith adds the grant of a pod set to the status of an admitted or reserved unit.
func AdmittedWith(admitted Status, podSet string, count int32) Status {
	admitted["admittedPodSets"] = []v1alpha1.AdmittedPodSet{{Name: podSet, Count: count}}
	return admitted
}

// AdmittedPods returns the number of pods in a pod set of the unit. If the unit holds quota, it is the number that
// was admitted.
func AdmittedPods(unit *v1alpha1.QueueUnit, podSet *v1alpha1.PodSet) int32 {
	if !unit.Status.Phase.HoldsQuota() {
		return podSet.Count
	}
	for _, admitted := range unit.Status.AdmittedPodSets {
		if admitted.Name == podSet.Name && admitted.Count > 0 {
			return min(admitted.Count, podSet.Count)
		}
	}
	return podSet.Count
}

// ElasticPodSet returns the index of the pod set that can be, or was, admitted with fewer pods; -1 if there is none.
// Only one pod set can be.
func ElasticPodSet(unit *v1alpha1.QueueUnit) (int, error) {
	sets, found := unit.Spec.PodSets, -1
	for i := range sets {
		if sets[i].MinCount == nil || *sets[i].MinCount < 1 || *sets[i].MinCount >= sets[i].Count {
			continue
		}
		if found >= 0 {
			return -1, fmt.Errorf("minCount is lower than count in pod sets %q and %q, but only one pod set may start with fewer pods; "+
				"remove minCount from the others", sets[found].Name, sets[i].Name)
		}
		found = i
	}
	if found < 0 { // its spec may have changed since then
		found = slices.IndexFunc(sets, func(set v1alpha1.PodSet) bool { return AdmittedPods(unit, &set) < set.Count })
	}
	return found, nil
}
