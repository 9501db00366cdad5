package decision

import (
	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// Follows reports whether the unit's requests are lowered together with those of its job: the job is released for
// this attempt, and is not suspended, evicted or ended. A job that changes before its release is requeued; see
// Desired.Exchanges.
func Follows(unit *v1alpha1.QueueUnit, job State) bool {
	if unit == nil {
		return false
	}
	phase := unit.Status.Phase
	return (phase == v1alpha1.PhaseDequeued || phase == v1alpha1.PhaseRunning) && job.Released == Attempt(unit) &&
		!job.Suspended && job.End == nil && lifecycle.EvictionOf(unit) == lifecycle.EvictionNone
}

// LoweredOf returns the fields of a merge patch that lowers the requests of an admitted unit to those of its job,
// each number separately; nil if no request of the job is lower. A number is never raised: a restart of the job is
// charged what is admitted, and pods that request more are charged themselves.
//
// Pods that have ended do not lower anything. Neither does a job whose requests are unknown or invalid. Other faults
// of the job do not matter, because the unit is admitted.
//
// Related is the job's related object; scaled is the object that its autoscaler scales. Either can be nil.
func LoweredOf(adapter framework.Adapter, job, related, scaled framework.Object, cluster Cluster, unit *v1alpha1.QueueUnit) map[string]any {
	pods, err := Pods(adapter, requested(adapter, job), related)
	if reader, scales := adapter.(framework.ScaledReader); scales && scaled != nil {
		pods, err = reader.PodsScaled(job, scaled)
	}
	if err != nil || pods.Unsized != "" {
		return nil
	}
	for i := range pods.Sets {
		pods.Sets[i].Count += pods.Sets[i].Ended
	}
	podSets, total, err := measure(pods, job.GetNamespace(), cluster)
	if err != nil {
		return nil
	}
	return lowered(&unit.Spec, podSets, total)
}

// GrownOf returns the numbers of pods that the autoscaler of an evicted job has raised above the admitted ones. Without
// pods, the autoscaler cannot lower them again, and the job would wait for its peak number of pods.
func GrownOf(adapter framework.Adapter, job framework.Object, unit *v1alpha1.QueueUnit) []framework.Growth {
	scaled, is := adapter.(framework.Autoscaled)
	if !is || unit == nil || !lifecycle.EvictionOf(unit).UnderWay() {
		return nil
	}
	admitted := make(map[string]int32, len(unit.Spec.PodSets))
	for _, set := range unit.Spec.PodSets {
		admitted[set.Name] = set.Count
	}
	return scaled.Grown(job, admitted)
}

func lowered(have *v1alpha1.QueueUnitSpec, podSets []v1alpha1.PodSet, total corev1.ResourceList) map[string]any {
	fields := map[string]any{}
	if least, lower := least(have.Resource, total); lower {
		fields["resource"] = replaceMap(have.Resource, least)
	}
	if least, lower := leastSets(have.PodSets, podSets); lower {
		fields["podSets"] = least
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// leastSets returns the admitted pod sets, with lower counts and amounts where the wanted pod set of the same name
// has lower ones. A set that the job no longer has stays, with 0 pods: a unit without any set would count as one pod.
func leastSets(have, want []v1alpha1.PodSet) (sets []v1alpha1.PodSet, lower bool) {
	byName := make(map[string]*v1alpha1.PodSet, len(want))
	for i := range want {
		byName[want[i].Name] = &want[i]
	}
	sets = make([]v1alpha1.PodSet, len(have))
	for i := range have {
		sets[i] = have[i]
		wanted, is := byName[have[i].Name]
		if !is {
			wanted = &v1alpha1.PodSet{Requests: have[i].Requests, Limits: have[i].Limits}
		}
		if leastSet(&sets[i], wanted) {
			lower = true
		}
	}
	return sets, lower
}

// leastSet lowers a pod set, and reports whether anything changed.
func leastSet(set, want *v1alpha1.PodSet) bool {
	requests, fewer := least(set.Requests, want.Requests)
	limits, limited := least(set.Limits, want.Limits)
	lower := want.Count < set.Count || fewer || limited
	set.Count, set.Requests, set.Limits = min(set.Count, want.Count), requests, limits
	switch {
	case set.MinCount == nil || *set.MinCount <= set.Count:
	case set.Count == 0:
		set.MinCount = nil
	default:
		set.MinCount = new(set.Count)
	}
	return lower
}

// least returns the lower amount of each resource, without resources that are not wanted, and whether anything is
// lower. It does not change its arguments.
func least(have, want corev1.ResourceList) (least corev1.ResourceList, lower bool) {
	least = have
	for name, amount := range have {
		wanted, is := want[name]
		if wanted.Cmp(amount) >= 0 {
			continue
		}
		if !lower {
			least, lower = have.DeepCopy(), true
		}
		if is {
			least[name] = wanted
		} else {
			delete(least, name)
		}
	}
	return least, lower
}
