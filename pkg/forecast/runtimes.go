// Package forecast predicts how long jobs run, and estimates when waiting jobs start, with a range from past errors.
//
// Terms. The limit of a job is its maximum execution time, which is enforced. A job's use of its limit is the fraction
// of it that the job ran: owners declare limits that are several times too long. Its overrun is how many times longer
// it ran than its owner expected; the expected time is not enforced.
//
// Predictions ignore the names of jobs. They depend only on the queue, on the declared times, and on how long the job
// has run.
package forecast

import (
	"math"
	"slices"
	"sort"
	"time"
)

const (
	// MostPredicted is the last position in a queue that gets an estimate.
	MostPredicted = 1000
	// MostQueues is the maximum number of remembered queues.
	MostQueues = 5000
	// mostRemembered is the number of values that each ring of a queue remembers.
	mostRemembered = 200
	// Fewest is how many jobs without a declared time must have ended before the run time of others is predicted.
	Fewest = 5
)

// RunTimes predicts how long jobs run, from how long the last jobs of the same queue ran. The zero value knows only
// declared times.
type RunTimes struct {
	queues map[string]*past
}

// past holds the run times of the last jobs of a queue.
type past struct {
	// uses are the uses of limits, and overruns the overruns. seconds are the run times of jobs without declared times.
	uses, overruns, seconds ring
}

// Declared holds the declared run times of a job.
type Declared struct {
	// Limit is its maximum execution time, and Expected how long its owner expects it to run; 0 means none.
	Limit, Expected time.Duration
}

// Ended records how long a job of the queue ran.
func (t *RunTimes) Ended(queue string, declared Declared, ran time.Duration) {
	p := t.queues[queue]
	if p == nil {
		if t.queues == nil || len(t.queues) >= MostQueues { // more than a cluster has, so most of them are gone
			t.queues = map[string]*past{}
		}
		p = &past{uses: ring{most: mostRemembered}, overruns: ring{most: mostRemembered}, seconds: ring{most: mostRemembered}}
		t.queues[queue] = p
	}
	if declared.Limit > 0 {
		p.uses.add(min(ran.Seconds()/declared.Limit.Seconds(), 1))
	}
	if declared.Expected > 0 {
		p.overruns.add(ran.Seconds() / declared.Expected.Seconds())
	}
	if declared == (Declared{}) {
		p.seconds.add(ran.Seconds())
	}
}

// Left returns how much longer a job of the queue runs after it has run for ran: until the median of the remembered
// jobs that ran longer. It returns false if nothing is known about such jobs.
func (t *RunTimes) Left(queue string, declared Declared, ran time.Duration) (left time.Duration, known bool) {
	p := t.queues[queue]
	switch {
	case declared.Expected > 0:
		left = p.leftOf(func(p *past) *ring { return &p.overruns }, declared.Expected, ran)
	case declared.Limit > 0:
		left = p.leftOf(func(p *past) *ring { return &p.uses }, declared.Limit, ran)
	}
	if declared.Limit > 0 {
		left = min(left, max(declared.Limit-ran, time.Second))
	}
	if left > 0 {
		return left, true
	}
	if p == nil || len(p.seconds.values) < Fewest {
		return 0, false
	}
	seconds, longer := p.seconds.medianAbove(ran.Seconds())
	if !longer {
		return max(ran, time.Second), true // the longest jobs run for as long again
	}
	return max(time.Duration(seconds*float64(time.Second))-ran, time.Second), true
}

// leftOf returns how much longer a job runs, given the fractions of declared times that earlier jobs ran. p can be
// nil.
func (p *past) leftOf(parts func(*past) *ring, declared, ran time.Duration) time.Duration {
	part, longer := 0.0, false
	if p != nil {
		part, longer = parts(p).medianAbove(ran.Seconds() / declared.Seconds())
	}
	switch {
	case longer:
	case ran < declared:
		part = 1
	default:
		return max(ran, time.Second) // the longest jobs run for as long again
	}
	return max(time.Duration(min(part*float64(declared), math.MaxInt32*float64(time.Second)))-ran, time.Second)
}

// ring holds the last values.
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

func (r *ring) inOrder() []float64 {
	if r.sorted == nil {
		r.sorted = slices.Sorted(slices.Values(r.values))
	}
	return r.sorted
}

// medianAbove returns the median of the values above v, and whether there are any. A mean would say little, because a
// few jobs run much longer than the others.
func (r *ring) medianAbove(v float64) (median float64, found bool) {
	values := r.inOrder()
	first := sort.Search(len(values), func(i int) bool { return values[i] > v })
	if first == len(values) {
		return 0, false
	}
	return values[(first+len(values))/2], true
}
