package visibility

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// search looks for the smallest change of quota, and for the units whose end would admit a unit.
type search struct {
	*Model
	unit   int32
	first  first
	access Access
	// group is that of the unit.
	group quota.Group
	// ahead are the units that are tried before the unit, in order.
	ahead []int32
}

// prepare reports whether there is anything to search.
func (s *search) prepare() bool {
	u := &s.view.Units[s.unit]
	if s.group = s.Model.group(u); s.group == nil {
		return false
	}
	line := s.contenders()[u.Queue]
	end, _ := slices.BinarySearchFunc(line, s.unit, func(a, b int32) int { return before(&s.view.Units[a], &s.view.Units[b]) })
	if end > mostOfQueue {
		return false
	}
	for _, i := range line[:end] {
		if !s.view.Units[i].RequeueAt().After(s.view.At) {
			s.ahead = append(s.ahead, i)
		}
	}
	return true
}

// need is what is missing below a limit for a unit and a number of units ahead of it.
type need struct {
	refusal *quota.Refusal
	missing int64
}

// needs returns what is missing for the unit and the first units ahead of it together. The units ahead are charged to a
// copy of the quota.
func (s *search) needs(ahead int) []need {
	names := s.view.Names.Clone()
	backend := s.view.Backend.Clone(names)
	group := groupIn(backend, &s.view.Units[s.unit])
	demand := s.view.Units[s.unit].Demand
	missing := map[quota.Space]*need{}
	var order []quota.Space
	add := func(d quota.Demand) {
		lacks := backend.Lacks(group, d)
		if r := group.Fits(d); r != nil && isLimit(r) && r.Final() {
			lacks = append(lacks, r)
		}
		for _, l := range lacks {
			space := l.Lack.Space
			if l.Reason == wellknown.ReasonExceedsMinQuota && space.Bound != quota.FixedMax {
				space.Bound = quota.FixedMin
			}
			if missing[space] == nil {
				missing[space] = &need{refusal: l}
				order = append(order, space)
			}
		}
	}
	for _, i := range s.ahead[:ahead] {
		d := s.view.Units[i].Demand
		add(d)
		group.Charge(&quota.Charge{Demand: d})
	}
	add(demand)
	group.Charge(&quota.Charge{Demand: demand})
	var all []need
	for _, space := range order {
		n := missing[space]
		if n.missing = -backend.Room(space); n.missing > 0 {
			all = append(all, *n)
		}
	}
	return all
}

// fewest returns the smallest number of units ahead for which try succeeds, and false if it fails for all. Units that
// are ahead may take what was meant for the unit, so that it has to be enough for them too.
func (s *search) fewest(try func(ahead int) bool) (ahead int, found bool) {
	if try(0) {
		return 0, true
	}
	low, high := 1, len(s.ahead)
	if high == 0 || !try(high) {
		return 0, false
	}
	const mostSteps = 500 // of units, for which the smallest change is searched and not only one that is enough
	if high > mostSteps {
		return high, true
	}
	for low < high {
		if middle := low + (high-low)/2; try(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high, true
}

// topmost returns the path of the topmost node at which anything is missing: units of all queues below it compete for
// what is added there.
func (s *search) topmost(needs []need) string {
	top := s.group.Path()
	for _, n := range needs {
		if strings.HasPrefix(top, n.refusal.Node+"/") {
			top = n.refusal.Node
		}
	}
	return top
}

// victims returns units that hold enough for the unit and the first units ahead of it, in the order of the function,
// none of which could be left out; nil if all together do not.
func (s *search) victims(ahead int, order func(a, b int64, u, v *scheduler.UnitView) int) map[int32]bool {
	needs := s.needs(ahead)
	left := make([]int64, len(needs))
	for j, n := range needs {
		if n.refusal.Final() {
			return nil // it would not fit even if nothing else held quota
		}
		left[j] = n.missing
	}
	amounts := map[int32][]int64{}
	for i := range s.view.Units {
		u := &s.view.Units[i]
		if u.Charge == nil || u.Phase == scheduler.Waiting {
			continue
		}
		var by []int64
		for j, n := range needs {
			if amount := s.view.Backend.Holds(n.refusal, u.Path, u.Charge); amount > 0 {
				if by == nil {
					by = make([]int64, len(needs))
				}
				by[j] = amount
			}
		}
		if by != nil {
			amounts[int32(i)] = by
		}
	}
	chosen := map[int32]bool{}
	for j := range needs {
		candidates := slices.SortedFunc(maps.Keys(amounts), func(a, b int32) int {
			u, v := &s.view.Units[a], &s.view.Units[b]
			return cmp.Or(order(amounts[a][j], amounts[b][j], u, v), strings.Compare(u.Key, v.Key))
		})
		for _, i := range candidates {
			if left[j] <= 0 {
				break
			}
			if amounts[i][j] == 0 || chosen[i] {
				continue
			}
			chosen[i] = true
			for k, amount := range amounts[i] {
				left[k] -= amount
			}
		}
		if left[j] > 0 || len(chosen) > mostToEnd {
			return nil
		}
	}
	// A unit that was chosen for one limit may make another one superfluous.
	for _, i := range slices.SortedFunc(maps.Keys(chosen), func(a, b int32) int {
		return cmp.Or(slices.Compare(amounts[a], amounts[b]), strings.Compare(s.view.Units[a].Key, s.view.Units[b].Key))
	}) {
		spare := true
		for j, amount := range amounts[i] {
			spare = spare && left[j]+amount <= 0
		}
		if spare {
			delete(chosen, i)
			for j, amount := range amounts[i] {
				left[j] += amount
			}
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	return chosen
}

// until returns when enough units have ended for the unit and those ahead of it, by their maximum execution times; nil if
// that is not known.
func (s *search) until(ahead int) *metav1.Time {
	ended := s.victims(ahead, func(_, _ int64, u, v *scheduler.UnitView) int {
		a, b := u.EndsAt(), v.EndsAt()
		switch {
		case a.IsZero() || b.IsZero():
			return cmp.Compare(asInt(a.IsZero()), asInt(b.IsZero()))
		default:
			return a.Compare(b)
		}
	})
	if ended == nil {
		return nil
	}
	var last time.Time
	for i := range ended {
		at := s.view.Units[i].EndsAt()
		if at.IsZero() {
			return nil
		}
		if at.After(last) {
			last = at
		}
	}
	return timeOf(last.Add(time.Second - 1))
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
