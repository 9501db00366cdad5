package visibility

import (
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// world is what would be different from the view. The zero world is as the view.
type world struct {
	// raises are limits that are greater.
	raises []quota.Raise
	// ended are units that hold no quota any more.
	ended map[int32]bool
	// open are queues that are not stopped, whose admission checks exist and whose pods are ready.
	open map[int32]bool
}

// How many waiting units take part in a world, of the queue of the unit and of all other queues. The first ones of each
// queue decide who gets what comes free.
const (
	mostOfQueue  = 2000
	mostOfOthers = 2000
	// leastOfEach and mostOfEach bound how many of each other queue take part.
	leastOfEach, mostOfEach = 2, 200
)

// backend returns the quota of a world, in which nothing is reserved: the core of the world reserves it again. Its names
// are a copy.
func (m *Model) backend(w world) (quota.Explainer, error) {
	return m.view.Backend.Raised(m.view.Names.Clone(), w.raises, m.charged(w.ended))
}

// afterBackoff is longer than any unit lets others pass, with policy RoundRobin and its default backoff.
const afterBackoff = 30 * time.Second

// admitted reports whether the unit would be admitted in a world. The core decides that, of the units that compete with
// it: those that wait in queues at and below the node with the path. The unit takes part even if it is held in the view.
func (m *Model) admitted(unit int32, below string, w world) bool {
	backend, err := m.backend(w)
	if err != nil {
		return false
	}
	queues := m.competing(unit, below)
	core := m.core(backend, w, queues)
	now := m.view.At
	for i := range w.ended {
		core.Apply(now, scheduler.UnitChanged{Unit: holding(&m.view.Units[i])})
	}
	core.Apply(now, scheduler.Listed{})
	for _, q := range queues {
		all := m.contenders()[q]
		most := min(max(mostOfOthers/len(queues), leastOfEach), mostOfEach)
		if q == m.view.Units[unit].Queue {
			most = mostOfQueue
		}
		for _, i := range all[:min(len(all), most)] {
			if u := &m.view.Units[i]; i != unit && m.takesPart(u, w) {
				core.Apply(now, scheduler.UnitChanged{Unit: unitOf(u)})
			}
		}
	}
	u := &m.view.Units[unit]
	core.Apply(now, scheduler.UnitChanged{Unit: unitOf(u)})
	plan, _ := core.Next(now)
	if len(w.ended) == 0 || admits(plan, u.Key) {
		return admits(plan, u.Key)
	}
	// Until the units end, room may be reserved.
	now = now.Add(afterBackoff)
	for i := range w.ended {
		core.Apply(now, scheduler.UnitGone{Key: m.view.Units[i].Key, UID: m.view.Units[i].UID})
	}
	plan, _ = core.Next(now)
	return admits(plan, u.Key)
}

func admits(plan scheduler.Plan, key string) bool {
	return slices.ContainsFunc(plan, func(write scheduler.Write) bool {
		return write.Key == key && (write.Kind == scheduler.Dequeue || write.Kind == scheduler.Reserve)
	})
}

// holding returns a unit that holds quota. It is not evicted in a world.
func holding(u *scheduler.UnitView) scheduler.Unit {
	unit := unitOf(u)
	unit.Demand.Requests = u.Charge.Total()
	unit.Phase, unit.Attempts, unit.Unstoppable, unit.DequeuedAt, unit.Quota = scheduler.Dequeued, 1, true, u.DequeuedAt(), u.Path
	return unit
}

// competing returns the queues whose units compete with the unit for what the node with the path has.
func (m *Model) competing(unit int32, below string) (queues []int32) {
	for q := range m.view.Queues {
		path := m.view.Queues[q].Quota
		if int32(q) == m.view.Units[unit].Queue || path == below || strings.HasPrefix(path, below+"/") {
			queues = append(queues, int32(q))
		}
	}
	return queues
}

// core returns a core with the quota and the queues of a world, and without units. What holds quota is charged to the
// backend, so nothing is evicted in it.
func (m *Model) core(backend quota.Backend, w world, queues []int32) *scheduler.Scheduler {
	now := m.view.At
	core := scheduler.New(scheduler.Options{Policy: m.view.DefaultPolicy, Backoff: queue.DefaultBackoff()})
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

// takesPart reports whether a unit that waits for quota is tried in a world. It may be one that can never fit now.
func (m *Model) takesPart(u *scheduler.UnitView, w world) bool {
	waitsForPods := u.Refusal != nil && u.Refusal.Reason == wellknown.ReasonWaitingForPods && !w.open[u.Queue]
	return !u.RequeueAt().After(m.view.At) && !waitsForPods
}

// unitOf returns the unit as the core receives it for the first time.
func unitOf(u *scheduler.UnitView) scheduler.Unit {
	return scheduler.Unit{Key: u.Key, Facts: scheduler.Facts{UID: u.UID, Kind: u.Kind, QuotaName: u.QuotaName, Version: 1,
		Submitted: u.Submitted, Demand: u.Demand, Priority: u.Priority}}
}
