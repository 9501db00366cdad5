package codec

import (
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// keepElastic copies the pod sets of a unit that can be, or was, admitted with fewer pods. Most units cannot.
func (c Compactor) keepElastic(unit, compact *schedulingv1alpha1.QueueUnit) {
	compact.Status.AdmittedPodSets = unit.Status.AdmittedPodSets
	if len(compact.Spec.PodSets) > 0 { // already kept for the source of the quota
		return
	}
	if i, err := lifecycle.ElasticPodSet(unit); i < 0 && err == nil {
		return
	}
	for i := range unit.Spec.PodSets {
		set := &unit.Spec.PodSets[i]
		compact.Spec.PodSets = append(compact.Spec.PodSets,
			schedulingv1alpha1.PodSet{Name: set.Name, Count: set.Count, MinCount: set.MinCount, Requests: set.Requests})
	}
}

// elastic returns how a unit can be, or was, admitted with fewer pods; nil if it cannot. whole is the unit's demand. A
// pod's request is the part of whole that it adds, but at most an equal share.
func (r Reader) elastic(unit *schedulingv1alpha1.QueueUnit, whole quota.Demand) (*scheduler.Elastic, error) {
	i, err := lifecycle.ElasticPodSet(unit)
	if err != nil || i < 0 {
		return nil, err
	}
	set := &unit.Spec.PodSets[i]
	smaller := unit.DeepCopy()
	smaller.Spec.PodSets[i].Count--
	for name, each := range set.Requests {
		if total, is := smaller.Spec.Resource[name]; is && total.Cmp(each) > 0 {
			total.Sub(each)
			smaller.Spec.Resource[name] = total
		}
	}
	without, err := r.Demand(smaller)
	if err != nil {
		return nil, err
	}
	e := &scheduler.Elastic{PodSet: set.Name, Min: ptr.Deref(set.MinCount, set.Count), Count: set.Count}
	if admitted := lifecycle.AdmittedPods(unit, set); admitted < set.Count {
		e.Granted = admitted
	}
	for _, a := range whole.Requests {
		rest, _ := without.Requests.Get(a.ID)
		if each := min(a.Value-rest, a.Value/int64(set.Count)); each > 0 {
			e.Pod = append(e.Pod, resources.Amount{ID: a.ID, Value: each})
		}
	}
	return e, nil
}
