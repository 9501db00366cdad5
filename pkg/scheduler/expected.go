package scheduler

import (
	"cmp"
	"math"
	"time"

	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/queue"
)

// Expected is a number of seconds as a bfloat16, which keeps units small and has an error of less than 1 %. 0 means
// none.
type Expected uint16

// ExpectedOf returns the seconds as an Expected.
func ExpectedOf(seconds int32) Expected {
	return Expected(math.Float32bits(float32(max(seconds, 0))) >> 16)
}

func (e Expected) seconds() float64 { return float64(math.Float32frombits(uint32(e) << 16)) }

// Duration returns the time.
func (e Expected) Duration() time.Duration { return time.Duration(e.seconds() * float64(time.Second)) }

// lengthOf returns the length of the unit's item: its limit or, if it has none and the policy orders by length, its
// expected run time, corrected by past errors. It separates shapes, because a shape is tried by its first item and a
// booking treats units with different limits differently.
//
// Units that declare nothing are ordered by the square of their size, because larger jobs run longer and take more from
// others meanwhile. An expected time never moves a unit back, because its owner would then declare none.
func (q *queueState) lengthOf(u *unit) queue.Length {
	switch {
	case !q.Policy.ByLimit && !q.besideBookings:
		return 0
	case !q.Policy.ByLimit || u.MaxSeconds > 0:
		return queue.LengthOf(q.limitOf(u))
	}
	size := q.knows().Size(u.Demand.Requests)
	length := queue.ExpectedLength(queue.UnknownSeconds * size * size)
	if u.Expected > 0 {
		length = min(length, queue.ExpectedLength(u.Expected.seconds()*q.knows().Overrun(u.namespace())))
	}
	return length
}

// limitOf returns the limit of a waiting unit in seconds. If owners in its namespace raise the limits of running jobs, it
// is corrected by past errors.
func (q *queueState) limitOf(u *unit) int32 {
	if !q.knows().Raises(u.namespace()) {
		return u.MaxSeconds
	}
	return int32(min(float64(u.MaxSeconds)*q.knows().Overrun(u.namespace()), math.MaxInt32))
}

// knows returns what is known about the jobs of the queue.
func (q *queueState) knows() *forecast.Learned { return cmp.Or(q.set.Learned, &q.learned) }

// runs reports whether the job of a unit runs.
func (u *unit) runs() bool {
	return (u.Phase == Dequeued || u.Phase == Running) && !u.Evicted && !u.Stopped && !u.Over && u.dequeuedAt != 0
}

// learn records what a unit requested and how long it ran, before it stops running. If its job has not ended, its time
// only counts if it ran longer than expected. Otherwise, suspending a job before its end would hide how long it runs.
func (s *Scheduler) learn(u *unit, ended bool, now time.Time) {
	if u.Growth || u.queue == nil || u.queue.set.Learned != nil || !u.runs() {
		return
	}
	ran, q := max(now.Sub(u.dequeuedAt.time()), 0), u.queue
	changed, of := q.learned.Requested(u.Demand.Requests), ""
	declared := u.Expected.Duration()
	if declared == 0 && q.learned.Raises(u.namespace()) {
		declared = time.Duration(u.MaxSeconds) * time.Second
	}
	if declared > 0 && (ended || ran > declared) && q.learned.Overran(u.namespace(), declared, ran) && !changed {
		changed, of = true, u.namespace()
	}
	if changed {
		s.learned = append(s.learned, lesson{q, of})
	}
}

// learnRaise records that the limit of a running unit was raised or removed.
func (s *Scheduler) learnRaise(u *unit) {
	if q := u.queue; !u.Growth && q != nil && q.set.Learned == nil && q.learned.Raised(u.namespace()) {
		s.learned = append(s.learned, lesson{q, u.namespace()})
	}
}

// isRaisedBy reports whether the newer version raises or removes the limit of a unit that runs and continues to run.
func (u *unit) isRaisedBy(seen *Unit) bool {
	return u.runs() && seen.Phase.holdsQuota() && seen.Attempts == u.Attempts && !seen.Partial && !seen.Inactive &&
		u.MaxSeconds > 0 && (seen.MaxSeconds == 0 || seen.MaxSeconds > u.MaxSeconds)
}

// lesson says that the units of a queue must be reordered, or only those of the namespace if it is not empty.
type lesson struct {
	queue     *queueState
	namespace string
}

// reorder reorders the units that something was learned about.
func (s *Scheduler) reorder(now time.Time) {
	for _, l := range s.learned {
		if q := l.queue; s.queues[q.name] == q && (q.Policy.ByLimit || q.besideBookings) {
			s.settleUnitsOf(l.queue, l.namespace, now)
		}
	}
	s.learned = nil
}
