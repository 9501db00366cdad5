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
		p.explainWaiting()
		// The core may have released a job in that time, whose end frees quota again.
		if _, running := p.running.Top(); !running {
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
	start time.Time
	now   time.Time
	// wake is when the core requested its next call; zero: never.
	wake time.Time

	units []scheduler.Unit
	// byKey maps keys to jobs. order lists the jobs by submission, and next is the index of
	// the first one that is not submitted yet.
	byKey map[string]int
	order []int
	next  int
	// running are the released jobs, ordered by their end.
	running *queue.Heap[*run]
	// runs are the running jobs by index, and left the run times of evicted jobs that are resumed.
	runs    map[int]*run
	left    map[int]time.Duration
	version uint64
	ended   int
	result  Result
}

// run is a released job.
type run struct {
	job        int
	start, end time.Time
	place      int
}

func newSimulation(scenario Scenario) (*simulation, error) {
	names := resources.NewNames()
	backend, warnings, err := tree.New(names, scenario.Tree, scenario.Options)
	if err != nil {
		return nil, err
	}
	// The start is arbitrary, because only differences matter.
	p := &simulation{Scenario: scenario, core: scheduler.New(scenario.Core), start: time.Unix(0, 0).UTC(), byKey: map[string]int{},
		runs: map[int]*run{}, left: map[int]time.Duration{}}
	if p.units, err = scenario.units(names, p.start); err != nil {
		return nil, err
	}
	p.running = queue.NewHeap(func(a, b *run) bool {
		if !a.end.Equal(b.end) {
			return a.end.Before(b.end)
		}
		return p.units[a.job].Key < p.units[b.job].Key
	}, func(r *run) *int { return &r.place })
	for i, u := range p.units {
		if other, taken := p.byKey[u.Key]; taken {
			return nil, fmt.Errorf("jobs %d and %d of the trace have the same name %s; give each job its own name", other+1, i+1, u.Key)
		}
		p.byKey[u.Key] = i
		p.order = append(p.order, i)
	}
	// Jobs of the same time are ordered by name, so that the order of rows does not matter.
	slices.SortFunc(p.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.Jobs[a].Submitted, p.Jobs[b].Submitted), strings.Compare(p.units[a].Key, p.units[b].Key))
	})
	p.result = Result{Outcomes: make([]Outcome, len(p.Jobs)), Warnings: warnings}
	p.now = p.start
	p.core.Apply(p.now, scheduler.QuotaChanged{Backend: backend})
	for _, q := range p.Queues {
		p.core.Apply(p.now, q)
	}
	return p, nil
}

// step advances the time to the next event and processes it. It reports whether there was an
// event.
func (p *simulation) step() bool {
	at, ok := p.nextEvent()
	if !ok {
		return false
	}
	if p.wake.IsZero() || at.Before(p.wake) {
		p.now = at
	} else {
		p.now = p.wake
	}
	p.end()
	p.submit()
	p.decide()
	return true
}

// nextEvent returns when the next job is submitted or ends. Without such an event, no
// decision of the core can change anything.
func (p *simulation) nextEvent() (at time.Time, ok bool) {
	if p.next < len(p.order) {
		at, ok = p.start.Add(p.Jobs[p.order[p.next]].Submitted), true
	}
	if first, running := p.running.Top(); running && (!ok || first.end.Before(at)) {
		at, ok = first.end, true
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

func (p *simulation) end() {
	for {
		first, ok := p.running.Top()
		if !ok || first.end.After(p.now) {
			return
		}
		p.running.Remove(first)
		delete(p.runs, first.job)
		p.units[first.job].Phase = scheduler.Ended
		p.apply(first.job)
		p.ended++
		if p.Progress != nil && p.ended%progressEvery == 0 {
			p.Progress(p.ended, len(p.Jobs))
		}
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
		for _, w := range plan {
			p.land(w)
		}
	}
}

func (p *simulation) land(w scheduler.Write) {
	i := p.byKey[w.Key]
	u := &p.units[i]
	p.version++
	u.Version, u.Reason = p.version, w.Reason
	p.result.Writes++
	switch w.Kind {
	case scheduler.Dequeue:
		u.Phase, u.Attempts, u.DequeuedAt, u.Quota = scheduler.Dequeued, w.Attempt, p.now, w.Quota
		p.release(i, w.Quota)
	case scheduler.Evict:
		u.Evicted, u.Eviction = true, scheduler.Eviction{At: p.now, For: w.EvictedFor}
	case scheduler.Requeue:
		u.Phase, u.Evicted, u.Stopped, u.Eviction = scheduler.Waiting, false, false, scheduler.Eviction{}
		u.Requeues, u.RequeueAt, u.Quota = w.Requeue.Count, w.Requeue.Until, w.Quota
	default:
		p.result.Outcomes[i].Reason, p.result.Outcomes[i].Message, p.result.Outcomes[i].Quota = w.Reason, w.Message, w.Quota
	}
	p.core.Apply(p.now, scheduler.Written{Key: w.Key, Seq: w.Seq, Version: u.Version, DequeuedAt: u.DequeuedAt, Quota: w.Quota, Requeue: w.Requeue})
	if w.Kind == scheduler.Evict {
		p.stop(i)
	}
}

// release starts a job.
func (p *simulation) release(i int, quota string) {
	runs, resumed := p.left[i]
	if !resumed {
		runs = p.Jobs[i].Runs
	}
	delete(p.left, i)
	r := &run{job: i, start: p.now, end: p.now.Add(runs)}
	p.running.Set(r)
	p.runs[i] = r
	before, first := p.result.Outcomes[i], p.now.Sub(p.start)
	if before.Evictions > 0 {
		first = before.FirstStart
	}
	p.result.Outcomes[i] = Outcome{Released: true, Start: p.now.Sub(p.start), End: r.end.Sub(p.start), Quota: quota,
		FirstStart: first, Evictions: before.Evictions, Lost: before.Lost}
}

// stop stops a job that is evicted, which takes no time.
func (p *simulation) stop(i int) {
	r := p.runs[i]
	p.running.Remove(r)
	delete(p.runs, i)
	o := &p.result.Outcomes[i]
	o.Evictions++
	p.result.Evictions++
	if ran := p.now.Sub(r.start); p.Victims == Resume {
		p.left[i] = r.end.Sub(p.now)
	} else {
		o.Lost += ran
	}
	o.Released = false
	p.units[i].Stopped = true
	p.apply(i)
}

// explainWaiting advances the time until the core has written why units wait.
func (p *simulation) explainWaiting() {
	for end := p.now.Add(2 * scheduler.ReasonInterval); !p.wake.IsZero() && !p.wake.After(end); {
		p.now = p.wake
		p.decide()
	}
}
