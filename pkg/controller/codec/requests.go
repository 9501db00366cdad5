package codec

import (
	"fmt"

	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	jobkinds "kube-queue.dev/kube-queue/pkg/generated/kinds"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Requests returns the demand of the unit from its spec.resource. The Demand of every Source starts
// with it.
func Requests(names *resources.Names, unit *v1alpha1.QueueUnit) (quota.Demand, error) {
	jobs := names.ID(quota.JobsResource)
	ref := &unit.Spec.ConsumerRef
	demand := quota.Demand{Preemptible: ptr.Deref(unit.Spec.Preemptible, true),
		PodsExist: isGrowth(&unit.Spec) || jobkinds.Extension(ref.APIVersion, ref.Kind) == jobkinds.Pods}
	if _, ok := unit.Spec.Resource[quota.JobsResource]; ok {
		demand.Requests = resources.Vector(nil).With(jobs, 1)
		return demand, fmt.Errorf("spec.resource contains %s, which is counted automatically; create the unit again without it", quota.JobsResource)
	}
	requests, err := resources.Request(names, unit.Spec.Resource)
	demand.Requests = requests
	if !isGrowth(&unit.Spec) {
		demand.Requests = requests.With(jobs, 1)
	}
	return demand, err
}
