package elasticquota

import (
	"maps"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// PodOptions are how pods are counted.
type PodOptions struct {
	// Rules are how much a pod requests.
	Rules requests.Rules
	// CountUnqueued is whether pods that belong to no unit count for the group of their namespace.
	CountUnqueued bool
}

// podUse is what a pod requests, in base units by name of the resource.
type podUse []amount

type amount struct {
	name  unique.Handle[string]
	value int64
}

// Pods returns that a pod uses what it requests.
func (s *Source) Pods() backend.PodRules {
	strays := backend.Orphans
	if s.pods.CountUnqueued {
		strays = backend.UnqueuedPods
	}
	return backend.PodRules{Weigh: s.weigh, Requests: s.amounts, Strays: strays}
}

func (s *Source) weigh(p *corev1.Pod, ended bool) backend.PodUse {
	if ended {
		return podUse(nil)
	}
	list := s.pods.Rules.OfPod(p)
	use := make(podUse, 0, len(list))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if value := resources.UsedValue(string(name), list[name]); value > 0 {
			use = append(use, amount{unique.Make(string(name)), value})
		}
	}
	return use
}

func (s *Source) amounts(use backend.PodUse) resources.Vector {
	weighed, is := use.(podUse)
	if !is || len(weighed) == 0 {
		return nil
	}
	amounts := make(resources.Vector, 0, len(weighed))
	for _, r := range weighed {
		amounts = append(amounts, resources.Amount{ID: s.names.ID(r.name.Value()), Value: r.value})
	}
	slices.SortFunc(amounts, func(a, b resources.Amount) int { return int(a.ID) - int(b.ID) })
	return amounts
}
