package resourcequota

import (
	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Pods returns the rules of the API server. ResourceQuotas limit all pods, and count/pods those that have
// ended too.
func (s *Source) Pods() backend.PodRules {
	return backend.PodRules{Weigh: weigh, Requests: s.requests, CountEnded: true, Strays: backend.AllPods}
}

func weigh(p *corev1.Pod, ended bool) backend.PodUse {
	one := resourcequota.Pods{Class: classOf(p), Count: 1, Ended: ended}
	if !ended {
		options := helpers.PodResourcesOptions{UseStatusResources: true}
		one.Requests, one.Limits = helpers.PodRequests(p, options), helpers.PodLimits(p, options)
	}
	// Amounts that are too large count as the largest possible amount.
	use, _ := resourcequota.Weigh(one)
	return use
}

func (s *Source) requests(use backend.PodUse) resources.Vector {
	weighed, is := use.(resourcequota.Use)
	if !is {
		return nil
	}
	amounts, _ := s.backend.Vector(weighed)
	return amounts
}

// classOf returns the class with which the API server counts the pod.
func classOf(p *corev1.Pod) resourcequota.Class {
	return resourcequota.Class{
		BestEffort:                p.Status.QOSClass == corev1.PodQOSBestEffort,
		Terminating:               p.Spec.ActiveDeadlineSeconds != nil,
		CrossNamespacePodAffinity: resourcequota.CrossesNamespaces(p.Spec.Affinity),
		PriorityClass:             p.Spec.PriorityClassName,
	}
}
