package simulator

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// run is a released job until it ends or has stopped.
type run struct {
	job   int
	start time.Time
	// until is when the job ends or, if it is stopping, has stopped.
	until    time.Time
	stopping bool
	// why is the reason for its eviction. left is the run time that remains when it has stopped.
	why   wellknown.Reason
	left  time.Duration
	place int32
}

// newRunning returns a heap of runs. Runs that end at the same time are ordered by name.
func (p *simulation) newRunning() *queue.Heap[*run] {
	return queue.NewHeap(func(a, b *run) bool {
		if !a.until.Equal(b.until) {
			return a.until.Before(b.until)
		}
		return p.units[a.job].Key < p.units[b.job].Key
	}, func(r *run) *int32 { return &r.place })
}

// longest bounds the virtual time, because a time.Duration is at most 292 years.
const (
	year    = 365 * 24 * time.Hour
	longest = 250 * year
)

func (p *simulation) release(job int, quota string) {
	runs, goesOn := p.left[job]
	if !goesOn {
		runs = p.Jobs[job].Runs
	}
	delete(p.left, job)
	if runs > longest-p.now.Sub(p.start) {
		p.late = fmt.Errorf("the last job would end after more than %d years; raise the quota, or replay fewer jobs", longest/year)
		runs = 0
	}
	r := &run{job: job, start: p.now, until: p.now.Add(runs)}
	p.running.Set(r)
	p.runs[job] = r
	o := &p.result.Outcomes[job]
	o.Released, o.Start, o.End, o.Quota = true, p.now.Sub(p.start), r.until.Sub(p.start), quota
	o.Reason, o.Message = "", ""
	if o.Evictions == 0 {
		o.FirstStart = o.Start
	}
	if p.Observer != nil {
		p.Observer.Starts(job, o.Start)
	}
}

// evict begins to stop a job. A job that ends before it would have stopped just ends.
func (p *simulation) evict(job int, why wellknown.Reason) {
	r := p.runs[job]
	stops := p.now.Add(p.StopsIn)
	if !stops.Before(r.until) {
		return
	}
	r.why, r.left = why, r.until.Sub(stops)
	r.until, r.stopping = stops, true
	p.running.Set(r)
}

// end ends and stops the jobs that are due.
func (p *simulation) end() {
	for {
		r, ok := p.running.Top()
		if !ok || r.until.After(p.now) {
			return
		}
		p.running.Remove(r)
		delete(p.runs, r.job)
		if r.stopping {
			p.stopped(r)
			continue
		}
		p.units[r.job].Phase = scheduler.Ended
		p.apply(r.job)
		p.ended++
		if p.Observer != nil {
			p.Observer.Ends(r.job, p.now.Sub(p.start))
		}
		if p.Progress != nil && p.ended%progressEvery == 0 {
			p.Progress(p.ended, len(p.Jobs))
		}
	}
}

// stopped records that an evicted job has stopped. The core then queues it again.
func (p *simulation) stopped(r *run) {
	o := &p.result.Outcomes[r.job]
	if p.Victims == Resume {
		p.left[r.job] = r.left
	} else {
		o.Lost += p.now.Sub(r.start)
	}
	o.Released = false
	o.Evictions++
	switch r.why {
	case wellknown.ReasonPreempted:
		o.Preempted++
	case wellknown.ReasonReclaimed:
		o.Reclaimed++
	}
	p.result.Interrupted = append(p.result.Interrupted, Interruption{Job: r.job, Start: r.start.Sub(p.start), End: p.now.Sub(p.start)})
	p.units[r.job].Stopped = true
	p.apply(r.job)
}
