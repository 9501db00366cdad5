package simulator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// flushInterval is how often the core searches for lost wake-ups. A trace of a hundred years has 1,200 months.
const flushInterval = 30 * 24 * time.Hour

// progressEvery is the number of finished jobs between two calls of Progress.
const progressEvery = 500

// Run simulates a scenario until every job has ended or can never be released. It fails if
// the tree or a job is invalid, or if the context is done.
func Run(ctx context.Context, scenario Scenario) (*Result, error) {
	p, err := newSimulation(scenario)
	if err != nil {
		return nil, err
	}
	for {
		for steps := 0; p.step(); steps++ {
			if steps%progressEvery == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		if p.late != nil {
			return nil, p.late
		}
		p.explainWaiting()
		// Meanwhile, the core may have released a job whose end frees quota again.
		if _, ok := p.nextEvent(); !ok {
			break
		}
	}
	p.result.Flushes = p.core.Rescued()
	if scenario.Progress != nil {
		scenario.Progress(p.ended, len(scenario.Jobs))
	}
	return &p.result, nil
}

// simulation is a running scenario.
type simulation struct {
	Scenario
	core  *scheduler.Scheduler
	names *resources.Names
	start time.Time
	now   time.Time
	// wake is when the core requested its next call; zero for never.
	wake time.Time

	units []scheduler.Unit
	// byKey maps keys to jobs. order lists the jobs by submission, and next is the index of
	// the first one that is not submitted yet.
	byKey map[string]int
	order []int
	next  int
	// running are the released jobs, ordered by when they end or stop. runs has the same jobs by
	// index.
	running *queue.Heap[*run]
	runs    map[int]*run
	// left is the remaining run time of evicted jobs that continue where they stopped.
	left map[int]time.Duration
	// requeuedUntil is when the last evicted job is queued again.
	requeuedUntil time.Time

	version uint64
	ended   int
	// late is why the simulation ends early; nil otherwise.
	late   error
	result Result
}

func newSimulation(scenario Scenario) (*simulation, error) {
	names := resources.NewNames()
	backend, warnings, err := tree.New(names, scenario.Tree, scenario.Options)
	if err != nil {
		return nil, err
	}
	scenario.Core.FlushInterval = flushInterval
	// The start is arbitrary, because only differences matter.
	p := &simulation{Scenario: scenario, core: scheduler.New(scenario.Core), names: names, start: time.Unix(0, 0).UTC(), byKey: map[string]int{},
		runs: map[int]*run{}, left: map[int]time.Duration{}}
	if p.units, err = scenario.units(names, p.start); err != nil {
		return nil, err
	}
	p.running = p.newRunning()
	for i, u := range p.units {
		if other, taken := p.byKey[u.Key]; taken {
			return nil, fmt.Errorf("jobs %d and %d of the trace have the same name %s; give each job its own name", other+1, i+1, u.Key)
		}
		p.byKey[u.Key] = i
		p.order = append(p.order, i)
	}
	// Jobs with the same submission time are ordered by name, so that the order of rows does not matter.
	slices.SortFunc(p.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.Jobs[a].Submitted, p.Jobs[b].Submitted), strings.Compare(p.units[a].Key, p.units[b].Key))
	})
	p.result = Result{Outcomes: make([]Outcome, len(p.Jobs)), Warnings: warnings}
	p.now = p.start
	p.core.Apply(p.now, scheduler.QuotaChanged{Backend: backend})
	for _, group := range backend.Groups() {
		p.core.Apply(p.now, scheduler.QueueChanged{Queue: group.Queue(), Preemption: p.Preemption, ReserveAfter: p.ReserveAfter})
	}
	for _, q := range p.Queues {
		p.core.Apply(p.now, q)
	}
	return p, nil
}

// step advances the time to the next event and processes it. It reports whether there was an
// event.
func (p *simulation) step() bool {
	at, ok := p.nextEvent()
	if !ok || p.late != nil {
		return false
	}
	if p.wake.IsZero() || at.Before(p.wake) {
		p.now = at
	} else {
		p.now = p.wake
	}
	p.end()
	from := p.next
	p.submit()
	p.decide()
	if p.Observer != nil {
		for _, i := range p.order[from:p.next] {
			if p.units[i].Phase == scheduler.Waiting {
				p.Observer.Waits(i, func() *scheduler.View { return p.core.View(p.now, p.names) })
			}
		}
	}
	return true
}

// nextEvent returns when the next job is submitted, ends, stops or is queued again after its eviction. Without such
// an event, no decision of the core can change anything: everything else that the core waits for needs a running job.
func (p *simulation) nextEvent() (at time.Time, ok bool) {
	if p.next < len(p.order) {
		at, ok = p.start.Add(p.Jobs[p.order[p.next]].Submitted), true
	}
	if first, running := p.running.Top(); running && (!ok || first.until.Before(at)) {
		at, ok = first.until, true
	}
	if !ok && !p.wake.IsZero() && !p.wake.After(p.requeuedUntil) {
		at, ok = p.wake, true
	}
	return at, ok
}

func (p *simulation) submit() {
	for ; p.next < len(p.order); p.next++ {
		i := p.order[p.next]
		if p.start.Add(p.Jobs[i].Submitted).After(p.now) {
			return
		}
		p.apply(i)
	}
}

// apply reports a change of a unit to the core.
func (p *simulation) apply(job int) {
	p.version++
	p.units[job].Version = p.version
	p.core.Apply(p.now, scheduler.UnitChanged{Unit: p.units[job]})
}

// decide runs the core and applies its writes until it has no more.
func (p *simulation) decide() {
	for {
		plan, wake := p.core.Next(p.now)
		p.wake = wake
		if len(plan) == 0 {
			return
		}
		for i := range plan {
			p.land(&plan[i])
		}
	}
}

func (p *simulation) land(w *scheduler.Write) {
	i := p.byKey[w.Key]
	u := &p.units[i]
	p.version++
	u.Version, u.Reason = p.version, w.Reason
	switch w.Kind {
	case scheduler.Dequeue:
		u.Phase, u.Attempts, u.DequeuedAt, u.Quota = scheduler.Dequeued, w.Attempt, p.now, w.Quota
		p.release(i, w.Quota)
		if o := &p.result.Outcomes[i]; o.Evictions == 0 {
			o.FirstPods = w.Grant.Count
		}
	case scheduler.Evict:
		u.Evicted, u.Eviction = true, scheduler.Eviction{At: p.now, For: w.EvictedFor}
		p.evict(i, w.Reason)
	case scheduler.Requeue:
		u.Phase, u.Evicted, u.Stopped, u.Eviction = scheduler.Waiting, false, false, scheduler.Eviction{}
		u.Requeues, u.RequeueAt, u.Quota = w.Requeue.Count, w.Requeue.Until, w.Quota
		if u.RequeueAt.After(p.requeuedUntil) {
			p.requeuedUntil = u.RequeueAt
		}
		p.explain(i, w)
	default:
		p.explain(i, w)
	}
	p.core.Apply(p.now, scheduler.Written{Write: w, Version: u.Version, At: u.DequeuedAt})
}

// explain records why a job waits.
func (p *simulation) explain(i int, w *scheduler.Write) {
	o := &p.result.Outcomes[i]
	o.Reason, o.Message, o.Quota = w.Reason, w.Message, w.Quota
}

// explainWaiting advances the time until the core has written why units wait, or until there is
// an event.
func (p *simulation) explainWaiting() {
	for end := p.now.Add(2 * scheduler.ReasonInterval); !p.wake.IsZero() && !p.wake.After(end); {
		p.now = p.wake
		p.decide()
		if _, ok := p.nextEvent(); ok {
			return
		}
	}
}
