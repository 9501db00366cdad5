package pods

import (
	"slices"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// sum is what pods request: all of them, and those that are not being deleted.
type sum struct {
	pods         int
	all, lasting amounts
	// live is the number of pods that are not being deleted. unschedulable is the number of those for which the
	// scheduler finds no node, by its message; nil if there are none.
	live          int
	unschedulable map[string]int
}

// include adds a pod, or subtracts it.
func (s *sum) include(pod *podFacts, plus bool) {
	if plus {
		s.pods++
	} else {
		s.pods--
	}
	s.all.add(pod.requests, plus)
	if pod.terminating {
		return
	}
	s.lasting.add(pod.requests, plus)
	change := -1
	if plus {
		change = 1
	}
	s.live += change
	if pod.unschedulable == "" {
		return
	}
	if s.unschedulable == nil {
		s.unschedulable = map[string]int{}
	}
	if s.unschedulable[pod.unschedulable] += change; s.unschedulable[pod.unschedulable] == 0 {
		delete(s.unschedulable, pod.unschedulable)
	}
	if len(s.unschedulable) == 0 {
		s.unschedulable = nil
	}
}

// amounts are sums by resource, in the order of the resources, without zeros.
type amounts []amount

type amount struct {
	id  resources.ID
	sum resources.Sum
}

// add adds the vector, or subtracts it.
func (a *amounts) add(v resources.Vector, plus bool) {
	for _, by := range v {
		at, found := slices.BinarySearchFunc(*a, by.ID, func(a amount, id resources.ID) int { return int(a.id) - int(id) })
		if !found {
			*a = slices.Insert(*a, at, amount{id: by.ID})
		}
		sum := &(*a)[at].sum
		if plus {
			*sum = sum.Plus(by.Value)
		} else {
			*sum = sum.Minus(by.Value)
		}
		if *sum == (resources.Sum{}) {
			*a = slices.Delete(*a, at, at+1)
		}
	}
}

// vector returns the sums, each at most the greatest int64.
func (a amounts) vector() resources.Vector {
	if len(a) == 0 {
		return nil
	}
	v := make(resources.Vector, 0, len(a))
	for _, of := range a {
		v = append(v, resources.Amount{ID: of.id, Value: of.sum.Clamp()})
	}
	return v
}
