package simulator

import (
	"cmp"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Situation is everything that exists at one time.
type Situation struct {
	// Backend is the quota. Units that hold quota are not charged to it yet.
	Backend quota.Backend
	// Core holds the options of the core, such as the policy of queues that are not in Queues.
	Core scheduler.Options
	// Queues are the settings that an administrator gave to queues.
	Queues []scheduler.QueueChanged
	// Units are all units. Their keys are unique.
	Units []scheduler.Unit
	// Decided, if set, is called with the core after the first decisions.
	Decided func(*scheduler.Scheduler)
}

// Decided is what the core decides about a unit.
type Decided struct {
	// Admitted is true if a waiting unit is admitted immediately, possibly after evictions for it.
	Admitted bool
	// Evicted is true if a unit that held quota is evicted.
	Evicted bool
	// Outcome has the reason, message and quota of a unit that waits.
	Outcome
}

// forever is a run time that no simulation reaches.
const forever = 1 << 62

// Decide returns what the core decides immediately about each unit, in their order. Evicted jobs stop immediately.
// Decide does not wait for admission checks or for pods to be ready. Then it lets time pass without ending jobs, until
// each waiting unit has a reason.
func Decide(s Situation, at time.Time) []Decided {
	p := situated(s, at, func(int) time.Duration { return forever })
	decided := make([]Decided, len(p.units))
	for i := range decided {
		decided[i].Admitted = p.result.Outcomes[i].Released && !holds(&s.Units[i])
		decided[i].Evicted = p.result.Outcomes[i].Evictions > 0
	}
	for end := at.Add(2 * scheduler.ReasonDelay); !p.wake.IsZero() && !p.wake.After(end); {
		p.now = p.wake
		p.decideAll()
	}
	for i := range decided {
		decided[i].Outcome = p.result.Outcomes[i]
	}
	return decided
}

// Start is the first start of a unit.
type Start struct {
	// After is the time until the start; NotKnown if that is not known.
	After time.Duration
	// Pods is the number of pods of its elastic pod set that it starts with, if not all.
	Pods int32
}

// NotKnown is the value of After if the start is not known.
const NotKnown time.Duration = -1

// mostSteps bounds the cost of Starts. It is enough for the starts and ends of 20,000 units.
const mostSteps = 50_000

// Starts plays the situation forward and returns when each waiting unit first starts after at, if that is within the
// horizon. runs returns how long a unit runs: from at if it holds quota, otherwise from its start. A unit with 0 never
// ends.
func Starts(s Situation, at time.Time, horizon time.Duration, runs func(unit int) time.Duration) []Start {
	s.Core.Silent = true // otherwise, most steps would be for reasons that nobody reads
	p := situated(s, at, func(i int) time.Duration { return cmp.Or(runs(i), forever) })
	if s.Decided != nil {
		s.Decided(p.core)
	}
	for range mostSteps {
		next, ok := p.nextEvent()
		if ok && !p.wake.IsZero() && p.wake.Before(next) {
			next = p.wake
		}
		if !ok || next.After(at.Add(horizon)) || !p.step() {
			break
		}
	}
	starts := make([]Start, len(p.units))
	for i := range starts {
		starts[i].After = NotKnown
		if o := &p.result.Outcomes[i]; (o.Released || o.Evictions > 0) && !holds(&s.Units[i]) {
			starts[i] = Start{o.FirstStart, o.FirstPods}
		}
	}
	return starts
}

// holds reports whether a unit holds quota at the beginning.
func holds(u *scheduler.Unit) bool {
	return u.Phase == scheduler.Reserved || u.Phase == scheduler.Dequeued || u.Phase == scheduler.Running
}

// situated returns a simulation of the situation, after the first decisions.
func situated(s Situation, at time.Time, runs func(unit int) time.Duration) *simulation {
	p := &simulation{Scenario: Scenario{Jobs: make([]Job, len(s.Units))}, core: scheduler.New(s.Core), start: at, now: at,
		byKey: map[string]int{}, runs: map[int]*run{}, left: map[int]time.Duration{}, result: Result{Outcomes: make([]Outcome, len(s.Units))}}
	p.running, p.next = p.newRunning(), len(s.Units)
	p.core.Apply(at, scheduler.QuotaChanged{Backend: s.Backend})
	for _, q := range s.Queues {
		p.core.Apply(at, q)
	}
	p.units = append(p.units, s.Units...)
	for i := range p.units {
		u := &p.units[i]
		p.Jobs[i].Runs = runs(i)
		p.byKey[u.Key] = i
		if holds(u) {
			p.release(i, u.Quota)
			if u.Evicted && !u.Stopped {
				p.evict(i, u.Reason)
			}
		}
		if u.RequeueAt.After(p.requeuedUntil) {
			p.requeuedUntil = u.RequeueAt
		}
		u.Version, u.Reason, u.HeldReported = 0, "", false // each reason is given again
		p.apply(i)
	}
	p.core.Apply(at, scheduler.Listed{})
	p.decideAll()
	return p
}

// decideAll runs the core until it decides nothing more, and lets evicted jobs stop.
func (p *simulation) decideAll() {
	for {
		p.decide()
		if first, ok := p.running.Top(); !ok || first.until.After(p.now) {
			return
		}
		p.end()
	}
}
