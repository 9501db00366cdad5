package pods

import (
	"slices"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// sum has the requests of pods: of all, and of those that are not being deleted.
type sum struct {
	// pods is the number of pods, and busy the number of those that are not idle.
	pods, busy   int
	all, lasting total
	// live is the number of pods that are not being deleted. unschedulable counts those that the scheduler finds no
	// node for, by its message; nil if there are none.
	live          int
	unschedulable map[string]int
}

// include adds a pod, or subtracts it.
func (s *sum) include(pod *podFacts, plus bool) {
	change := -1
	if plus {
		change = 1
	}
	s.pods += change
	if !pod.idle {
		s.busy += change
	}
	s.all.include(pod, plus)
	if pod.terminating {
		return
	}
	s.lasting.include(pod, plus)
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

// total has the requests of pods. Shared requests count once. While pods disagree on how much they share, because some
// were seen earlier, the largest amount of each resource counts. If they disagree on the resources, because they select
// different types of devices, Mixed counts.
type total struct {
	amounts
	shared map[string][]sharers
}

// sharers is a number of pods that share the same.
type sharers struct {
	Shared
	pods int
}

func (t *total) include(pod *podFacts, plus bool) {
	t.add(pod.requests, plus)
	for _, shared := range pod.shared {
		t.add(most(t.shared[shared.Key]), false)
		t.share(shared, plus)
		t.add(most(t.shared[shared.Key]), true)
	}
}

// share counts a pod among those that share.
func (t *total) share(shared Shared, plus bool) {
	if t.shared == nil {
		t.shared = map[string][]sharers{}
	}
	all := t.shared[shared.Key]
	at := slices.IndexFunc(all, func(s sharers) bool { return s.same(shared) })
	switch {
	case at < 0:
		all = append(all, sharers{shared, 1})
	case plus:
		all[at].pods++
	default:
		if all[at].pods--; all[at].pods == 0 {
			all = slices.Delete(all, at, at+1)
		}
	}
	if t.shared[shared.Key] = all; len(all) == 0 {
		delete(t.shared, shared.Key)
	}
}

func most(all []sharers) (most resources.Vector) {
	mixed := slices.ContainsFunc(all, func(s sharers) bool {
		return !slices.EqualFunc(s.Requests, all[0].Requests, func(a, b resources.Amount) bool { return a.ID == b.ID })
	})
	for _, s := range all {
		if mixed {
			s.Requests = s.Mixed
		}
		most = most.Max(s.Requests)
	}
	return most
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

// vector returns the sums, capped at the largest int64.
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
