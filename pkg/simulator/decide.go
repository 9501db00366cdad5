package simulator

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Situation is everything that exists at one time.
type Situation struct {
	// Backend is the quota. Units that hold quota are not charged to it yet.
	Backend quota.Backend
	// Core options include the policy of queues that are not in Queues.
	Core scheduler.Options
	// Queues are settings of queues by an administrator.
	Queues []scheduler.QueueChanged
	// Units are all units, with a different Key each.
	Units []scheduler.Unit
}

// Decided is what the core decides about a unit.
type Decided struct {
	// Admitted is whether a waiting unit is admitted immediately, possibly after others were evicted for it.
	Admitted bool
	// Evicted is whether a unit that held quota is evicted.
	Evicted bool
	// Outcome has the reason, message and quota of a unit that waits.
	Outcome
}

// forever is longer than any job runs while something is decided.
const forever = 1 << 62

// Decide returns what the core decides immediately about each of the units, in their order. Evicted jobs stop
// immediately. Admission checks and pods that are not ready are not waited for. Then time passes, and no job ends,
// until each waiting unit has a reason.
func Decide(s Situation, at time.Time) []Decided {
	p := &simulation{Scenario: Scenario{Jobs: make([]Job, len(s.Units))}, core: scheduler.New(s.Core), start: at, now: at,
		byKey: map[string]int{}, runs: map[int]*run{}, left: map[int]time.Duration{}, result: Result{Outcomes: make([]Outcome, len(s.Units))}}
	p.running, p.next = p.newRunning(), len(s.Units)
	p.core.Apply(at, scheduler.QuotaChanged{Backend: s.Backend})
	for _, q := range s.Queues {
		p.core.Apply(at, q)
	}
	p.units = append(p.units, s.Units...)
	held := make([]bool, len(p.units))
	for i := range p.units {
		u := &p.units[i]
		p.Jobs[i].Runs = forever
		p.byKey[u.Key] = i
		if held[i] = u.Phase == scheduler.Reserved || u.Phase == scheduler.Dequeued || u.Phase == scheduler.Running; held[i] {
			p.release(i, u.Quota)
		}
		u.Version, u.Reason = 0, "" // each reason is given again
		p.apply(i)
	}
	p.core.Apply(at, scheduler.Listed{})
	p.decideAll()
	decided := make([]Decided, len(p.units))
	for i := range decided {
		decided[i].Admitted = p.result.Outcomes[i].Released && !held[i]
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
