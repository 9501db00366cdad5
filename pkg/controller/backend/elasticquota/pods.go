package elasticquota

import (
	"maps"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// PodOptions configure how pods are counted.
type PodOptions struct {
	// Rules define how much a pod requests.
	Rules requests.Rules
	// CountUnqueued is whether pods without a unit count for the group of their namespace.
	CountUnqueued bool
}

// podUse is what a pod requests, in base units by resource name. The use of a pod that may have devices is a
// PodDevices.
type podUse []amount

type amount struct {
	name  unique.Handle[string]
	value int64
}

// Pods returns the rules of a backend in which pods use what they request.
func (s *Source) Pods() backend.PodRules {
	strays := backend.Orphans
	if s.pods.CountUnqueued {
		strays = backend.UnqueuedPods
	}
	return backend.PodRules{Weigh: s.weigh, Requests: s.requests, Devices: s.devices, Strays: strays}
}

func (s *Source) weigh(p *corev1.Pod, ended bool) backend.PodUse {
	if ended {
		return podUse(nil)
	}
	if devices := s.pods.Rules.DevicesOf(p); devices != nil {
		return devices
	}
	return weighed(s.pods.Rules.OfPod(p))
}

func weighed(list corev1.ResourceList) podUse {
	use := make(podUse, 0, len(list))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if name == quota.JobsResource { // it counts units, and anyone can write it into a pod
			continue
		}
		if value := resources.UsedValue(string(name), list[name]); value > 0 {
			use = append(use, amount{unique.Make(string(name)), value})
		}
	}
	return use
}

func (s *Source) requests(use backend.PodUse) (own resources.Vector, shared []pods.Shared) {
	switch use := use.(type) {
	case podUse:
		return s.amounts(use), nil
	case *requests.PodDevices:
		list, devices := s.devices.Count(use)
		for _, key := range slices.Sorted(maps.Keys(devices)) {
			one := devices[key]
			shared = append(shared, pods.Shared{Key: key, Requests: s.amounts(weighed(one.Requests)), Mixed: s.amounts(weighed(one.Default))})
		}
		return s.amounts(weighed(list)), shared
	}
	return nil, nil
}

func (s *Source) amounts(use podUse) resources.Vector {
	if len(use) == 0 {
		return nil
	}
	amounts := make(resources.Vector, 0, len(use))
	for _, r := range use {
		amounts = append(amounts, resources.Amount{ID: s.names.ID(r.name.Value()), Value: r.value})
	}
	slices.SortFunc(amounts, func(a, b resources.Amount) int { return int(a.ID) - int(b.ID) })
	return amounts
}
