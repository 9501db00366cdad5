package visibility

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// world is a set of changes to the view. The zero world is the view itself.
type world struct {
	// raises are higher limits.
	raises []quota.Raise
	// ended are units that no longer hold quota. If inTurn is true, they end one after the other, by their maximum
	// execution times, and others can start in between.
	ended  map[int32]bool
	inTurn bool
	// open are queues that count as not stopped, with existing admission checks and ready pods.
	open map[int32]bool
}

// Maximum numbers of waiting units of the unit's queue, and of all other queues together, in a world. The first units
// of each queue decide which ones get the freed quota.
const (
	mostOfQueue  = 2000
	mostOfOthers = 2000
	// leastOfEach and mostOfEach bound the number for each other queue.
	leastOfEach, mostOfEach = 2, 200
)

// backend returns the quota of a world, without reservations, because the core of the world reserves again. Units that
// end are not charged. The names are a copy.
func (m *Model) backend(w world) (quota.Explainer, error) {
	backend, err := m.unreserved().Raised(m.view.Names.Clone(), w.raises)
	if err != nil {
		return nil, err
	}
	for i := range w.ended {
		c := m.view.Units[i].Charged()
		backend.Of(c).Uncharge(c.Charge)
	}
	return backend, nil
}

// afterBackoff is longer than any default backoff of policy RoundRobin.
const afterBackoff = 30 * time.Second

// outcome lists the units that are admitted in a world.
type outcome struct {
	admitted bool
	// others are all other admitted units, in order. before is how many of them are admitted before the unit.
	others []int32
	before int
	// tried is the number of units and queues that took part.
	tried int
	// impossible is true if no change would be enough for the others.
	impossible bool
}

// admitted reports whether the unit would be admitted in a world.
func (m *Model) admitted(unit int32, below string, w world) bool {
	return m.outcome(unit, below, w).admitted
}

// outcome returns which units are admitted in a world. The core decides among the unit and its competitors: units that
// wait in queues at or below the node with the path. The unit takes part even if it is held in the view.
func (m *Model) outcome(unit int32, below string, w world) (all outcome) {
	below = m.scope(unit, below)
	late, tried := map[int32]bool{}, 0
	for range mostTries {
		var early []int32
		all, early = m.run(unit, below, w, late)
		all.tried += tried
		if tried = all.tried; len(early) == 0 || len(w.open) > 0 {
			return all
		}
		for _, i := range early {
			late[i] = true
		}
	}
	return outcome{tried: tried}
}

// mostTries is the maximum number of tries of a world in which units are admitted before others end.
const mostTries = 3

// run returns which units are admitted in a world, and which of them are admitted before units end. In the view, these
// wait only because of earlier reservations for others, which the core does not know. late units take part only after
// units have ended.
func (m *Model) run(unit int32, below string, w world, late map[int32]bool) (all outcome, early []int32) {
	queues := m.competing(unit, below)
	running := m.running(queues, w)
	backend, err := m.backend(world{raises: w.raises, ended: running})
	if err != nil {
		return all, nil
	}
	all.tried = len(queues) + len(running) - len(w.ended)
	core := m.core(backend, w, queues)
	now := m.view.At
	for i := range running {
		core.Apply(now, scheduler.UnitChanged{Unit: holding(&m.view.Units[i])})
	}
	core.Apply(now, scheduler.Listed{})
	next := func() {
		plan, _ := core.Next(now)
		for i, write := range plan {
			if w.inTurn { // otherwise, the unit is not tried again
				core.Apply(now, scheduler.Written{Write: &plan[i], Version: write.Version + 1, At: now})
			}
			switch {
			case write.Kind != scheduler.Dequeue && write.Kind != scheduler.Reserve:
			case write.Key == m.view.Units[unit].Key:
				all.admitted, all.before = true, len(all.others)
			default:
				all.others = append(all.others, m.index()[write.Key])
			}
		}
	}
	m.participants(unit, below, w, func(i int32) {
		all.tried++
		if !late[i] {
			core.Apply(now, scheduler.UnitChanged{Unit: unitOf(&m.view.Units[i])})
		}
	})
	next()
	if len(w.ended) == 0 {
		return all, nil
	}
	early = slices.Clone(all.others)
	if all.admitted {
		early = append(early, unit)
	}
	now = now.Add(afterBackoff) // until the units end, room can be reserved
	for i := range late {
		core.Apply(now, scheduler.UnitChanged{Unit: unitOf(&m.view.Units[i])})
	}
	for _, i := range slices.SortedFunc(maps.Keys(w.ended), func(i, j int32) int { return m.view.Units[i].EndsAt().Compare(m.view.Units[j].EndsAt()) }) {
		core.Apply(now, scheduler.UnitGone{Key: m.view.Units[i].Key, UID: m.view.Units[i].UID})
		if w.inTurn {
			next()
			now = now.Add(afterBackoff)
		}
	}
	next()
	return all, early
}

// running returns the units that hold quota and that the core of a world must know: those that end and, if a queue
// reserves room, those that a reservation waits for.
func (m *Model) running(queues []int32, w world) map[int32]bool {
	if !slices.ContainsFunc(queues, func(q int32) bool { return m.view.Queues[q].Settings.ReserveAfter > 0 }) {
		return w.ended
	}
	running := map[int32]bool{}
	maps.Copy(running, w.ended)
	for i := range m.view.Units {
		u := &m.view.Units[i]
		if u.Charge != nil && !u.Remains && u.Phase != scheduler.Waiting && u.Phase != scheduler.Ended && !u.Evicted && slices.Contains(queues, u.Queue) {
			running[int32(i)] = true
		}
	}
	return running
}

// participants calls visit with the unit and with its competitors in a world.
func (m *Model) participants(unit int32, below string, w world, visit func(int32)) {
	queues := m.competing(unit, below)
	for _, q := range queues {
		all := m.contenders()[q]
		most := min(max(mostOfOthers/len(queues), leastOfEach), mostOfEach)
		if q == m.view.Units[unit].Queue {
			most = mostOfQueue
		}
		last := int32(-1)
		for _, i := range all {
			if most == 0 {
				break
			}
			if u := &m.view.Units[i]; i != unit && m.takesPart(u, w) {
				visit(i)
				most--
				last = i
			}
		}
		for _, i := range m.oldest()[q] {
			if u := &m.view.Units[i]; most == 0 && i != unit && m.before(last, i) < 0 && m.takesPart(u, w) {
				visit(i)
			}
		}
	}
	visit(unit)
}

// scope returns the path of the topmost node that keeps room from the unit or from units ahead of it, or the given
// path if that is higher. The units that room is kept for must take part in all worlds. So must units of other queues
// that have waited long enough for a reservation below a common node.
func (m *Model) scope(unit int32, below string) string {
	u := &m.view.Units[unit]
	group := m.group(u)
	if group == nil {
		return below
	}
	include := func(node quota.NodeID) {
		if path := m.pathOf(node); strings.HasPrefix(below, path+"/") {
			below = path
		}
	}
	group.Spaces(&quota.Charge{Demand: quota.Demand{Requests: m.requested(unit), Preemptible: true}}, func(space quota.Space) {
		if (space.Bound == quota.Lending || space.Bound == quota.Kept) && m.view.Backend.Room(space) < math.MaxInt64 {
			include(space.Node)
		}
	})
	for q, oldest := range m.oldest() {
		if other := &m.view.Queues[q]; len(oldest) > 0 && m.view.At.Sub(time.UnixMicro(m.view.Units[oldest[0]].Submitted)) >= other.Settings.ReserveAfter {
			if at := slices.IndexFunc(other.Nodes, func(n quota.NodeID) bool { return slices.Contains(group.Nodes(), n) }); at >= 0 {
				include(other.Nodes[at])
			}
		}
	}
	return below
}

// requested returns the largest request of each resource of the unit and those ahead of it in its queue.
func (m *Model) requested(unit int32) (all resources.Vector) {
	greatest := map[resources.ID]int64{}
	for _, i := range append(m.aheadOf(unit), unit) {
		for _, a := range m.view.Units[i].Demand.Requests {
			greatest[a.ID] = max(greatest[a.ID], a.Value)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(greatest)) {
		all = append(all, resources.Amount{ID: id, Value: greatest[id]})
	}
	return all
}

// aheadOf returns the units that are tried before the unit in its queue, in order.
func (m *Model) aheadOf(unit int32) (ahead []int32) {
	line := m.contenders()[m.view.Units[unit].Queue]
	end, _ := slices.BinarySearchFunc(line, unit, m.before)
	for _, i := range line[:end] {
		if !m.view.Units[i].RequeueAt().After(m.view.At) {
			ahead = append(ahead, i)
		}
	}
	return ahead
}

// pathOf returns the path of a node that is above others. A backend without such nodes can have other usage.
func (m *Model) pathOf(node quota.NodeID) string {
	if int(node) < len(m.view.Usage) {
		return m.view.Usage[node].Path
	}
	return "" // a namespace without quota, which was unknown at the time of the view
}

// holding returns a unit that holds quota. Worlds do not evict it for others.
func holding(u *scheduler.UnitView) scheduler.Unit {
	unit := unitOf(u)
	unit.Demand.Requests, unit.Elastic = u.Charge.Total(), nil
	unit.Phase, unit.Attempts, unit.Unstoppable, unit.DequeuedAt, unit.Quota = scheduler.Dequeued, 1, true, u.DequeuedAt(), u.Path
	return unit
}

// competing returns the queues whose units compete with the unit for the quota of the node with the path.
func (m *Model) competing(unit int32, below string) (queues []int32) {
	for q := range m.view.Queues {
		path := m.view.Queues[q].Quota
		if int32(q) == m.view.Units[unit].Queue || path == below || strings.HasPrefix(path, below+"/") {
			queues = append(queues, int32(q))
		}
	}
	return queues
}

// core returns a core with the quota and the queues of a world, but without units. Units that hold quota are only
// charged to the backend, unless the core must know them.
func (m *Model) core(backend quota.Backend, w world, queues []int32) *scheduler.Scheduler {
	now := m.view.At
	core := scheduler.New(scheduler.Options{Policy: m.view.DefaultPolicy, Backoff: queue.DefaultBackoff(), Silent: true})
	for _, check := range m.view.Checks {
		core.Apply(now, scheduler.CheckChanged{Name: check})
	}
	core.Apply(now, scheduler.QuotaChanged{Backend: backend})
	for _, q := range queues {
		settings := m.view.Queues[q].Settings
		settings.Queue, settings.Preemption = m.view.Queues[q].Name, scheduler.Preemption{}
		settings.PodsReady = scheduler.PodsReady{} // the units that it waits for are not in the world
		if w.open[q] {
			settings.Stop = scheduler.NotStopped
			for _, check := range settings.Checks.Names() {
				core.Apply(now, scheduler.CheckChanged{Name: check})
			}
		}
		core.Apply(now, settings)
	}
	return core
}

// takesPart reports whether a unit that waits for quota is tried in a world. It includes units that can never fit in
// the view.
func (m *Model) takesPart(u *scheduler.UnitView, w world) bool {
	waitsForPods := u.Refusal != nil && u.Refusal.Reason == wellknown.ReasonWaitingForPods && !w.open[u.Queue]
	return !u.RequeueAt().After(m.view.At) && !waitsForPods
}

// unitOf returns the unit as the core first receives it.
func unitOf(u *scheduler.UnitView) scheduler.Unit {
	return scheduler.Unit{Key: u.Key, Facts: scheduler.Facts{UID: u.UID, Kind: u.Kind, QuotaName: u.QuotaName, Version: 1,
		Submitted: u.Submitted, Demand: u.Elastic.Whole(u.Demand), Elastic: u.Elastic, Priority: u.Priority, MaxSeconds: u.MaxSeconds, Expected: u.Expected, Growth: u.Growth}}
}
