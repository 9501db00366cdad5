package visibility

import (
	"math"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// Bounds of a search. The documentation of the reviews states how many units are tried.
const (
	// mostToRaise and mostToEnd are the maximum numbers of units and queues to try, in all worlds together, to find a
	// raise and units that end. A world that was started is finished.
	mostToRaise, mostToEnd = 40_000, 20_000
	// mostEnded is the maximum number of units that end.
	mostEnded = 100
	// mostOpened is the maximum number of rounds that open more limits to find the competitors for a raise.
	mostOpened = 6
	// mostRounds is the maximum number of rounds that add units which take what was meant for the unit.
	mostRounds = 4
)

// search looks for the smallest change of quota, and for the units whose end would admit a unit.
type search struct {
	*Model
	unit   int32
	first  first
	access Access
	// group is the group of the unit.
	group quota.Group
	// ahead are the units that are tried before the unit, in order.
	ahead []int32
	// reserved is a copy of the quota of the view.
	reserved quota.Explainer
	// left is the number of units that can still be tried.
	left int
	// everybody are all units that inOrder found to be admitted, before or after the unit.
	everybody []int32
}

// prepare reports whether there is anything to search.
func (s *search) prepare() bool {
	u := &s.view.Units[s.unit]
	if s.group = s.Model.group(u); s.group == nil {
		return false
	}
	if s.ahead = s.aheadOf(s.unit); len(s.ahead) >= mostOfQueue {
		return false
	}
	s.reserved = s.view.Backend.Clone(s.view.Names.Clone())
	return true
}

// isOwn reports whether another unit is in the queue of the unit.
func (s *search) isOwn(i int32) bool { return s.view.Units[i].Queue == s.view.Units[s.unit].Queue }

// isBehind reports whether another unit is behind the unit in its queue. Such a unit takes nothing that is meant for
// the unit.
func (s *search) isBehind(i int32) bool {
	return s.isOwn(i) && s.before(s.unit, i) < 0
}

// need is what is missing in a space.
type need struct {
	quota.Space
	missing int64
}

// placed is a charge of a group.
type placed struct {
	group  quota.Group
	charge *quota.Charge
}

// needs returns what the unit, and the others that are in its queue, lack when all others are charged as well. It
// charges them to the backend temporarily.
func (s *search) needs(backend quota.Explainer, others []int32) (all []need) {
	place := func(i int32) placed {
		u := &s.view.Units[i]
		d := u.Elastic.Whole(u.Demand) // it gets all pods that fit before the next unit is tried
		if i == s.unit {
			d = u.Demand
		}
		return placed{groupIn(backend, u), &quota.Charge{Demand: d}}
	}
	unit := place(s.unit)
	own, shapes := []placed{unit}, map[string]bool{unit.charge.Demand.Key(): true}
	charged := make([]placed, 0, len(others)+1)
	charge := func(p placed) {
		p.group.Charge(p.charge)
		charged = append(charged, p)
	}
	for _, i := range others {
		p := place(i)
		charge(p)
		if key := p.charge.Demand.Key(); s.isOwn(i) && !shapes[key] {
			shapes[key] = true
			own = append(own, p)
		}
	}
	seen := map[quota.Space]bool{}
	add := func(space quota.Space, missing int64) {
		if missing > 0 && !seen[space] {
			seen[space] = true
			all = append(all, need{space, missing})
		}
	}
	var kept []quota.Space
	for _, p := range own {
		for _, r := range backend.Lacks(p.group, p.charge.Demand) {
			if r.Lack.Bound == quota.Lending || r.Lack.Bound == quota.Kept {
				kept = append(kept, r.Lack.Space)
			}
		}
	}
	charge(unit)
	for _, p := range own {
		for _, r := range backend.Exceeds(p.group, p.charge.Demand) {
			if backend.Room(r.Lack.Space) == math.MaxInt64 { // the group guarantees nothing that the unit requests
				add(r.Lack.Space, r.Used)
				break
			}
		}
		rooms := map[quota.Space]int64{}
		var exceeded []quota.Space
		p.group.Spaces(p.charge, func(space quota.Space) {
			isLimit := space.Bound == quota.Max || space.Bound == quota.FixedMin || space.Bound == quota.FixedMax
			if room := backend.Room(space); isLimit && room < 0 {
				rooms[space] = room
				exceeded = append(exceeded, space)
			}
		})
		p.group.Uncharge(p.charge)
		exceeded = slices.DeleteFunc(exceeded, func(space quota.Space) bool { return backend.Room(space) == rooms[space] }) // it requests nothing there
		p.group.Charge(p.charge)
		for _, space := range exceeded {
			add(space, -rooms[space])
		}
	}
	for _, space := range kept {
		add(space, -backend.Room(space))
	}
	for _, p := range slices.Backward(charged) {
		p.group.Uncharge(p.charge)
	}
	return all
}

// outcome returns which units are admitted in a world; none if no more units may be tried.
func (s *search) outcome(below string, w world) outcome {
	if s.left <= 0 {
		return outcome{}
	}
	in := s.Model.outcome(s.unit, below, w)
	s.left -= in.tried
	return in
}

// enough returns the fewest other units that a change must also be enough for, because they would take what is meant
// for the unit: first units ahead of it that fit whenever it does, then others ahead of it in its queue, then also
// units of other queues. attempt tries a change that is enough for the unit and for others. order returns the others
// in the order in which they are admitted before the unit, as far as that is known. most limits how many units are
// tried.
func (s *search) enough(most int, attempt func(others []int32) outcome, order func() []int32) (others []int32, found bool) {
	s.left, s.everybody = most, nil
	others = s.noGreater()
	last := attempt(others)
	switch {
	case last.admitted:
		return s.fewer(others, last, attempt), true
	case last.impossible:
		return nil, false
	}
	more := s.with(nil, order(), others)
	own := slices.DeleteFunc(slices.Clone(more), func(i int32) bool { return !s.isOwn(i) })
	if len(own) > 0 && len(own) < len(more) && attempt(s.with(others, own, nil)).admitted {
		return s.fewest(others, own, attempt), true
	}
	if len(more) > 0 {
		all := attempt(s.with(others, more, nil))
		if all.admitted {
			return s.fewest(others, more, attempt), true
		}
		if !all.impossible && len(all.others) > 0 {
			others, last = s.with(others, more, nil), all
		}
	}
	for range mostRounds {
		all := s.with(others, last.others, nil)
		if len(all) == len(others) {
			break
		}
		others = all
		if last = attempt(others); last.admitted {
			return s.fewer(others, last, attempt), true
		}
	}
	// After a raise, units that could never fit before can come before the unit. As a last resort, try a change that is
	// enough for all.
	for _, further := range [][]int32{s.with(s.everybody, s.ahead, nil), s.competitors()} {
		if more := s.with(nil, further, others); len(more) > 0 && attempt(s.with(others, more, nil)).admitted {
			return s.fewest(others, more, attempt), true
		}
	}
	return nil, false
}

// competitors returns all units that take part in the widest world.
func (s *search) competitors() (all []int32) {
	top, _, _ := strings.Cut(s.group.Path(), "/")
	s.participants(s.unit, top, s.first.world, func(i int32) {
		if i != s.unit {
			all = append(all, i)
		}
	})
	return all
}

// noGreater returns the units ahead of the unit that request no more of any resource. They fit whenever the unit
// does.
func (s *search) noGreater() (all []int32) {
	unit := s.view.Units[s.unit].Demand
	for _, i := range s.ahead {
		u := &s.view.Units[i]
		greater := u.Demand.Preemptible != unit.Preemptible
		for _, a := range u.Demand.Requests {
			most, _ := unit.Requests.Get(a.ID)
			greater = greater || a.Value > most
		}
		if !greater && s.takesPart(u, s.first.world) {
			all = append(all, i)
		}
	}
	return all
}

// fewest returns the others and the shortest prefix of more for which the change is enough.
func (s *search) fewest(others, more []int32, attempt func([]int32) outcome) []int32 {
	for low := 1; low < len(more) && s.left > 0; {
		if middle := low + (len(more)-low)/2; attempt(s.with(others, more[:middle], nil)).admitted {
			more = more[:middle]
		} else {
			low = middle + 1
		}
	}
	return s.with(others, more, nil)
}

// fewer drops the others that are not admitted before the unit, if the change is still enough.
func (s *search) fewer(others []int32, in outcome, attempt func([]int32) outcome) []int32 {
	before := map[int32]bool{}
	for _, i := range in.others[:in.before] {
		before[i] = true
	}
	fewer := slices.DeleteFunc(slices.Clone(others), func(i int32) bool { return !before[i] })
	if len(fewer) < len(others) && attempt(fewer).admitted {
		return fewer
	}
	return others
}

// with returns the others and further ones, except those behind the unit in its queue and those in without.
func (s *search) with(others, further, without []int32) []int32 {
	known := make(map[int32]bool, len(others)+len(without))
	for _, list := range [][]int32{others, without} {
		for _, i := range list {
			known[i] = true
		}
	}
	all := slices.Clone(others)
	for _, i := range further {
		if !known[i] && !s.isBehind(i) {
			all = append(all, i)
		}
	}
	return all
}
