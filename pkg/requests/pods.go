package requests

import (
	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

// NotEnded is the field selector of the pods that have not ended.
const NotEnded = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// OfPod returns what a real pod requests, and the types of its devices. The arithmetic is
// the same as for templates; the API server has set defaults and overhead in the pod
// already. A container that is being resized counts as for the scheduler. The phase of the
// pod makes no difference.
//
// Claims of the pod (spec.resourceClaims) add nothing: what is admitted for its job covers
// them.
//
// An amount may be too large for 64 bits.
func (r Rules) OfPod(pod *corev1.Pod) corev1.ResourceList {
	return r.typed(helpers.PodRequests(pod, helpers.PodResourcesOptions{UseStatusResources: true}), &pod.Spec)
}
