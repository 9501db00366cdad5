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

// progressEvery is after how many ended jobs Progress is called.
const progressEvery = 500

// Run plays a scenario to its end: until every job has ended or is known never to be
// released. It fails when the tree is invalid, a job cannot be read, or the context
// ends.
func Run(ctx context.Context, scenario Scenario) (*Result, error) {
	p, err := newPlay(scenario)
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
		// The core may have released a job in that time, whose end frees room again.
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

// play is a scenario under way.
type play struct {
	Scenario
	core  *scheduler.Scheduler
	start time.Time
	now   time.Time
	// wake is when the core wants to be called; zero: never.
	wake time.Time

	units []scheduler.Unit
	// byKey finds jobs; order lists them by submission, of which next has not come.
	byKey map[string]int
	order []int
	next  int
	// running are the released jobs, by their ends.
	running *queue.Heap[*run]
	version uint64
	ended   int
	result  Result
}

// run is a released job.
type run struct {
	job   int
	end   time.Time
	place int
}

func newPlay(scenario Scenario) (*play, error) {
	names := resources.NewNames()
	backend, warnings, err := tree.New(names, scenario.Tree, scenario.Options)
	if err != nil {
		return nil, err
	}
	// Any instant does; only differences count.
	p := &play{Scenario: scenario, core: scheduler.New(scenario.Core), start: time.Unix(0, 0).UTC(), byKey: map[string]int{}}
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
			return nil, fmt.Errorf("jobs %d and %d of the trace are both named %s", other+1, i+1, u.Key)
		}
		p.byKey[u.Key] = i
		p.order = append(p.order, i)
	}
	// By name where the time is the same, so that nothing depends on the order of rows.
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

// step goes to the next instant at which something happens, and lets it happen; it
// reports whether there was one.
func (p *play) step() bool {
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

// nextEvent is when the next job comes or ends. When none does, nothing that the core
// could do changes anything any more.
func (p *play) nextEvent() (at time.Time, ok bool) {
	if p.next < len(p.order) {
		at, ok = p.start.Add(p.Jobs[p.order[p.next]].Submitted), true
	}
	if first, running := p.running.Top(); running && (!ok || first.end.Before(at)) {
		at, ok = first.end, true
	}
	return at, ok
}

func (p *play) submit() {
	for ; p.next < len(p.order); p.next++ {
		i := p.order[p.next]
		if p.start.Add(p.Jobs[i].Submitted).After(p.now) {
			return
		}
		p.tell(i)
	}
}

func (p *play) end() {
	for {
		first, ok := p.running.Top()
		if !ok || first.end.After(p.now) {
			return
		}
		p.running.Remove(first)
		p.units[first.job].Phase = scheduler.Ended
		p.tell(first.job)
		p.ended++
		if p.Progress != nil && p.ended%progressEvery == 0 {
			p.Progress(p.ended, len(p.Jobs))
		}
	}
}

// tell has the core know of a change of a unit.
func (p *play) tell(job int) {
	p.version++
	p.units[job].Version = p.version
	p.core.Apply(p.now, scheduler.UnitChanged{Unit: p.units[job]})
}

// decide lets the core decide, and lands its writes, until it wants no more.
func (p *play) decide() {
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

func (p *play) land(w scheduler.Write) {
	i := p.byKey[w.Key]
	u := &p.units[i]
	p.version++
	u.Version, u.Reason = p.version, w.Reason
	p.result.Writes++
	if w.Kind == scheduler.Dequeue {
		u.Phase, u.Attempts, u.DequeuedAt, u.Quota = scheduler.Dequeued, w.Attempt, p.now, w.Quota
		end := p.now.Add(p.Jobs[i].Runs)
		p.running.Set(&run{job: i, end: end})
		p.result.Outcomes[i] = Outcome{Released: true, Start: p.now.Sub(p.start), End: end.Sub(p.start), Quota: w.Quota}
	} else {
		p.result.Outcomes[i].Reason, p.result.Outcomes[i].Message, p.result.Outcomes[i].Quota = w.Reason, w.Message, w.Quota
	}
	p.core.Apply(p.now, scheduler.Written{Key: w.Key, Seq: w.Seq, Version: u.Version, DequeuedAt: u.DequeuedAt, Quota: w.Quota})
}

// explainWaiting gives the core the time it takes before it says why a unit waits.
func (p *play) explainWaiting() {
	for end := p.now.Add(2 * scheduler.ReasonInterval); !p.wake.IsZero() && !p.wake.After(end); {
		p.now = p.wake
		p.decide()
	}
}
