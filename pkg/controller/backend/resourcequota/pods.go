package resourcequota

import (
	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Pods returns the rules of the API server: ResourceQuotas limit all pods, and count/pods includes pods that have
// ended.
func (s *Source) Pods() backend.PodRules {
	return backend.PodRules{Weigh: s.weigh, Requests: s.requests, Devices: s.devices, CountEnded: true, Strays: backend.AllPods}
}

// podUse is the usage of a pod that may have devices, without its requests.
type podUse struct {
	resourcequota.Pods
	*requests.PodDevices
}

func (s *Source) weigh(p *corev1.Pod, ended bool) backend.PodUse {
	one := resourcequota.Pods{Class: classOf(p), Count: 1, Ended: ended}
	if !ended {
		one.Limits = helpers.PodLimits(p, helpers.PodResourcesOptions{UseStatusResources: true})
		if devices := s.rules.DevicesOf(p); devices != nil {
			return podUse{one, devices}
		}
		one.Requests = s.rules.OfPod(p)
	}
	// An amount that is too large counts as the largest possible amount.
	use, _ := resourcequota.Weigh(one)
	return use
}

// requests returns no shared claims: the API server counts a claim when it is created, no matter which pods use it.
func (s *Source) requests(use backend.PodUse) (resources.Vector, []pods.Shared) {
	if pod, is := use.(podUse); is {
		pod.Requests, _ = s.devices.Count(pod.PodDevices)
		use, _ = resourcequota.Weigh(pod.Pods)
	}
	weighed, is := use.(resourcequota.Use)
	if !is {
		return nil, nil
	}
	amounts, _ := s.backend.Vector(weighed)
	return amounts, nil
}

// classOf returns the class in which the API server counts the pod.
func classOf(p *corev1.Pod) resourcequota.Class {
	return resourcequota.Class{
		BestEffort:                p.Status.QOSClass == corev1.PodQOSBestEffort,
		Terminating:               p.Spec.ActiveDeadlineSeconds != nil,
		CrossNamespacePodAffinity: requests.CrossesNamespaces(p.Spec.Affinity),
		PriorityClass:             p.Spec.PriorityClassName,
	}
}
