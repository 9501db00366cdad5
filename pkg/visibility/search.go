package visibility

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Bounds of a search. The documentation of the reviews states how many units are tried.
const (
	// mostToRaise and mostToEnd are how many units and queues are tried, in all worlds together, to find a raise and units
	// that end. A world that was begun is finished.
	mostToRaise, mostToEnd = 40_000, 20_000
	// mostEnded is how many units end at most.
	mostEnded = 100
	// mostOpened is how often further limits are opened to find who competes for what a raise adds.
	mostOpened = 6
	// mostRounds is how often those are added who take what was meant for the unit.
	mostRounds = 4
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
	// reserved is a copy of the quota of the view.
	reserved quota.Explainer
	// left is how many more units may be tried.
	left int
	// everybody are all that inOrder found to be admitted, before the unit or after it.
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

// isBehind reports whether another unit is behind the unit in its queue. It takes nothing that is meant for the unit.
func (s *search) isBehind(i int32) bool {
	return s.isOwn(i) && before(&s.view.Units[s.unit], &s.view.Units[i]) < 0
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

// needs returns what the unit, and the units of its queue among the others, lack together with all others. These are charged
// to the backend meanwhile.
func (s *search) needs(backend quota.Explainer, others []int32) (all []need) {
	place := func(i int32) placed {
		u := &s.view.Units[i]
		return placed{groupIn(backend, u), &quota.Charge{Demand: u.Demand}}
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
			if backend.Room(r.Lack.Space) == math.MaxInt64 { // the group guarantees nothing that it requests
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
		p.group.Release(p.charge)
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
		p.group.Release(p.charge)
	}
	return all
}

// outcome returns who is admitted in a world; nobody if enough units were tried.
func (s *search) outcome(below string, w world) outcome {
	if s.left <= 0 {
		return outcome{}
	}
	in := s.Model.outcome(s.unit, below, w)
	s.left -= in.tried
	return in
}

// enough returns the fewest other units for which a change has to be enough in addition to the unit, because they would take
// what is meant for the unit: first those ahead of it that fit whenever it does, then others ahead of it in its queue, then
// also those of other queues. Attempt tries the change that is enough for the unit and for others. Order returns the others
// in the order in which they are admitted before the unit, as far as that is known. At most so many units are tried.
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
	// A raise may make units fit that could never fit before, and that are in front then. In the end, it is enough for all.
	for _, further := range [][]int32{s.with(s.everybody, s.ahead, nil), s.competitors()} {
		if more := s.with(nil, further, others); len(more) > 0 && attempt(s.with(others, more, nil)).admitted {
			return s.fewest(others, more, attempt), true
		}
	}
	return nil, false
}

// competitors returns all units that take part in the widest world.
func (s *search) competitors() (all []int32) {
	nodes := s.group.Nodes()
	s.participants(s.unit, s.pathOf(nodes[len(nodes)-1]), s.first.world, func(i int32) {
		if i != s.unit {
			all = append(all, i)
		}
	})
	return all
}

// noGreater returns the units ahead of the unit that request no more of anything. They fit whenever the unit does.
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

// fewest returns the others and the fewest first ones of more, with whom the change is enough.
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

// fewer returns those of the others that are admitted before the unit, if the change is still enough for it.
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

// with returns the others and further ones, without those behind the unit in its queue and those that are left out.
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

// raised returns a world with greater limits, and the path of the topmost node that has one: units of all queues below it
// compete for what is added. It returns false if there is none, or if the limits cannot be raised.
func (s *search) raised(raises []quota.Raise) (w world, below string, ok bool) {
	written, err := s.unreserved().Written(raises)
	if err != nil || len(written) == 0 {
		return world{}, "", false
	}
	w, below = s.first.world, s.group.Path()
	w.raises = raises
	for _, change := range written {
		if strings.HasPrefix(below, change.Quota+"/") {
			below = change.Quota
		}
	}
	return w, below, true
}

// raises returns what is to be raised for the unit and others.
func (s *search) raises(others []int32) (raises []quota.Raise) {
	for _, n := range s.needs(s.unreserved(), others) {
		raises = append(raises, quota.Raise{Space: n.Space, By: n.missing})
	}
	return raises
}

// inOrder returns the others that are admitted before the unit if there is room for everybody below the limits that the unit
// lacks. They may take what the unit did not lack before, and that limit is then opened as well. If that is not enough, all
// limits of its chain are: room is reserved for others once they lack only what they are owed.
func (s *search) inOrder() []int32 {
	var opened []quota.Space
	open := func(needs []need) (more bool) {
		for _, n := range needs {
			if n.Bound == quota.Lending || n.Bound == quota.Kept {
				n.Bound = quota.Max // something is left for the unit only if there is room for those for whom it is kept
			}
			if !slices.Contains(opened, n.Space) {
				opened, more = append(opened, n.Space), true
			}
		}
		return more
	}
	open(s.needs(s.reserved, nil))
	open(s.needs(s.unreserved(), s.noGreater()))
	var last outcome
	for range mostOpened {
		if w, below, ok := s.roomy(opened); ok {
			last = s.outcome(below, w)
		}
		s.everybody = last.others
		if last.admitted {
			return s.with(nil, last.others[:last.before], nil)
		}
		admitted := s.with(nil, last.others, nil)
		ahead := s.with(admitted, s.ahead, nil)
		if !open(s.needs(s.unreserved(), admitted)) && !open(s.needs(s.unreserved(), ahead)) && !open(s.needs(s.reserved, ahead)) && !open(s.limits()) {
			break
		}
	}
	return s.with(s.ahead, last.others, nil)
}

// limits returns all spaces that limit the unit or those ahead of it.
func (s *search) limits() (all []need) {
	demand := quota.Demand{Requests: s.requested(s.unit), Preemptible: s.view.Units[s.unit].Demand.Preemptible}
	groupIn(s.unreserved(), &s.view.Units[s.unit]).Spaces(&quota.Charge{Demand: demand}, func(space quota.Space) {
		if (space.Bound == quota.Max || space.Bound == quota.FixedMax) && s.unreserved().Room(space) < math.MaxInt64 {
			all = append(all, need{Space: space})
		}
	})
	return all
}

// roomy returns a world in which the spaces have room for all units that take part.
func (s *search) roomy(spaces []quota.Space) (w world, below string, ok bool) {
	some := make([]quota.Raise, len(spaces))
	for i, space := range spaces {
		some[i] = quota.Raise{Space: space, By: 1}
	}
	if _, below, ok = s.raised(some); !ok {
		return w, below, false
	}
	var all []int32
	s.participants(s.unit, s.scope(s.unit, below), s.first.world, func(i int32) {
		if i != s.unit {
			all = append(all, i)
		}
	})
	return s.raised(slices.DeleteFunc(s.raises(all), func(r quota.Raise) bool { return !slices.Contains(spaces, r.Space) }))
}

// victims returns units that hold enough for the unit and others, in the order of the function, none of which could be left
// out; nil if all together do not.
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

// freed returns a world in which units have ended, and the path of the topmost node at which units may wait for what they
// free: one that has all of them below it, or one above that where somebody may lack something.
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

// until returns when enough units have ended for the unit and others, by their maximum execution times; nil if that is not
// known.
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
