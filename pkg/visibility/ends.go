package visibility

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// ends returns the smallest set of units whose end admits the unit, preferring the largest amounts, and the time by
// which they end; nil if there is none or it is not known.
func (s *search) ends() (*visibilityv1alpha1.Remedy, *metav1.Time) {
	byAmount := func(a, b int64, _, _ *scheduler.UnitView) int { return cmp.Compare(b, a) }
	others, found := s.enough(mostToEnd, func(others []int32) outcome {
		ended := s.victims(others, byAmount)
		if ended == nil { // if nothing is lacking, the unit waits for room that is reserved for others
			return outcome{impossible: len(s.needs(s.reserved, others)) > 0}
		}
		w, below := s.freed(ended)
		return s.outcome(below, w)
	}, func() []int32 { return s.ahead })
	if !found {
		return nil, nil
	}
	ended := s.victims(others, byAmount)
	remedy := &visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.EndUnits}
	text, several := s.named(remedy, slices.Collect(maps.Keys(ended)), s.access)
	if several {
		text += " end"
	} else {
		text += " ends"
	}
	remedy.Message = s.then(text)
	s.addOthers(remedy, others)
	return remedy, s.until(others)
}

// victims returns units that together hold enough for the unit and others, chosen in the given order, without
// unnecessary ones; nil if all of them together do not hold enough.
func (s *search) victims(others []int32, order func(a, b int64, u, v *scheduler.UnitView) int) map[int32]bool {
	needs := s.needs(s.reserved, others)
	left, spaces := make([]int64, len(needs)), make([]quota.Refusal, len(needs))
	for j, n := range needs {
		left[j] = n.missing
		spaces[j] = quota.Refusal{Node: s.pathOf(n.Node), Lack: quota.Lack{Space: n.Space}}
	}
	amounts := map[int32][]int64{}
	for i := range s.view.Units {
		u := &s.view.Units[i]
		if u.Charge == nil || u.Phase == scheduler.Waiting {
			continue
		}
		var by []int64
		for j := range needs {
			if amount := s.view.Backend.Holds(&spaces[j], u.Charged()); amount > 0 {
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
		if left[j] > 0 || len(chosen) > mostEnded {
			return nil
		}
	}
	// A unit that was chosen for one limit can make another one unnecessary.
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

// freed returns a world in which units have ended, and the path of the topmost node where units may wait for what they
// free: the lowest node above all of them, or a higher one where a unit may lack something.
func (s *search) freed(ended map[int32]bool) (w world, below string) {
	w, below = s.first.world, s.group.Path()
	w.ended = ended
	path := func(node quota.NodeID) {
		if above := s.pathOf(node); strings.HasPrefix(below, above+"/") {
			below = above
		}
	}
	for _, node := range s.group.Nodes() {
		for i := range ended {
			if of := s.view.Units[i].Path; of != below && !strings.HasPrefix(of, below+"/") {
				path(node)
				break
			}
		}
	}
	var held resources.Vector
	for i := range ended {
		held = held.Max(s.view.Units[i].Charge.Total())
	}
	greatest := s.greatest()
	s.group.Spaces(&quota.Charge{Demand: quota.Demand{Requests: held, Preemptible: true}}, func(space quota.Space) {
		switch {
		case space.Bound == quota.Max && s.view.Backend.Room(space) < greatest[space.Resource]:
			path(space.Node)
		case (space.Bound == quota.Lending || space.Bound == quota.Kept) && s.view.Backend.Room(space) < math.MaxInt64:
			path(space.Node)
		}
	})
	return w, below
}

// until returns when enough units end for the unit and others, by their maximum execution times; nil if that is not
// known, or if others would take the freed quota.
func (s *search) until(others []int32) *metav1.Time {
	ended := s.victims(others, func(_, _ int64, u, v *scheduler.UnitView) int {
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
	w, below := s.freed(ended)
	if w.inTurn = true; !s.outcome(below, w).admitted {
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
