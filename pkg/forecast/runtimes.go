// Package forecast predicts how long jobs run, and states when waiting jobs start as a range that was right before.
//
// Terms. The limit of a job is its maximum execution time, which is enforced. A job's use of its limit is the part of
// it for which the job ran: owners declare limits that are several times too long.
//
// Nothing here reads what owners name their jobs. A prediction depends only on the queue, the limit, and how long the
// job has run.
package forecast

import (
	"slices"
	"sort"
	"time"
)

const (
	// MostQueues is of how many queues something is remembered.
	MostQueues = 5000
	// mostRemembered is how many jobs of each queue are remembered, with and without a limit each.
	mostRemembered = 200
	// fewest is how many jobs without a limit must have ended before the run time of others is predicted.
	fewest = 5
)

// RunTimes predicts how long jobs run, from how long the last jobs of the same queue ran. The zero value knows nothing
// but limits.
type RunTimes struct {
	queues map[string]*past
}

// past is how long the last jobs of a queue ran.
type past struct {
	// uses are the uses of limits. seconds are the run times of jobs without a limit.
	uses, seconds ring
}

// Ended records that a job of the queue has run. The limit is 0 if it had none.
func (t *RunTimes) Ended(queue string, limit, ran time.Duration) {
	p := t.queues[queue]
	if p == nil {
		if t.queues == nil || len(t.queues) >= MostQueues { // more than a cluster has, so most of them are gone
			t.queues = map[string]*past{}
		}
		p = &past{uses: ring{most: mostRemembered}, seconds: ring{most: mostRemembered}}
		t.queues[queue] = p
	}
	if limit > 0 {
		p.uses.add(min(ran.Seconds()/limit.Seconds(), 1))
	} else {
		p.seconds.add(ran.Seconds())
	}
}

// Left returns how much longer a job of the queue runs that has already run for some time: until the median of
// the remembered jobs that ran longer than that. It is false if nothing is known about such jobs.
func (t *RunTimes) Left(queue string, limit, ran time.Duration) (left time.Duration, known bool) {
	p := t.queues[queue]
	if limit > 0 {
		use, longer := 1.0, false
		if p != nil {
			use, longer = p.uses.medianAbove(ran.Seconds() / limit.Seconds())
		}
		if !longer {
			use = 1
		}
		return max(time.Duration(use*float64(limit))-ran, time.Second), true
	}
	if p == nil || len(p.seconds.values) < fewest {
		return 0, false
	}
	seconds, longer := p.seconds.medianAbove(ran.Seconds())
	if !longer {
		return max(ran, time.Second), true // the longest jobs run for as long again
	}
	return max(time.Duration(seconds*float64(time.Second))-ran, time.Second), true
}

// ring has the last values.
type ring struct {
	most   int
	values []float64
	next   int
	// sorted are the values in order; nil if they must be sorted again.
	sorted []float64
}

func (r *ring) add(v float64) {
	r.sorted = nil
	if len(r.values) < r.most {
		r.values = append(r.values, v)
		return
	}
	r.values[r.next] = v
	r.next = (r.next + 1) % r.most
}

// inOrder returns the values in order.
func (r *ring) inOrder() []float64 {
	if r.sorted == nil {
		r.sorted = slices.Sorted(slices.Values(r.values))
	}
	return r.sorted
}

// medianAbove returns the median of the values above v, and whether there are any. A mean would say little: few jobs run
// much longer than all others.
func (r *ring) medianAbove(v float64) (median float64, found bool) {
	values := r.inOrder()
	first := sort.Search(len(values), func(i int) bool { return values[i] > v })
	if first == len(values) {
		return 0, false
	}
	return values[(first+len(values))/2], true
}
