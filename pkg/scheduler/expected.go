package scheduler

import (
	"math"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
)

// Expected is a number of seconds as a bfloat16, which has an error of less than 1 %: a unit has no room for more. 0
// means none.
type Expected uint16

// ExpectedOf returns the seconds as an Expected.
func ExpectedOf(seconds int32) Expected {
	return Expected(math.Float32bits(float32(max(seconds, 0))) >> 16)
}

func (e Expected) seconds() float64 { return float64(math.Float32frombits(uint32(e) << 16)) }

// Duration returns the time.
func (e Expected) Duration() time.Duration { return time.Duration(e.seconds() * float64(time.Second)) }

// lengthOf returns the length of the unit's item: its limit or, with a policy that orders by it and no limit, what it is
// expected to run, corrected by how wrong such times were before. Shapes are tried by their first item, and units with
// different limits are treated differently beside a booking.
func (q *queueState) lengthOf(u *unit) queue.Length {
	switch {
	case q.set.ReserveAfter == 0 && !q.Policy.ByLimit:
		return 0
	case q.Policy.ByLimit && u.MaxSeconds <= 0 && u.Expected > 0:
		return queue.ExpectedLength(u.Expected.seconds() * q.overrunFactor())
	}
	return queue.LengthOf(u.MaxSeconds)
}

// overrunFactor is by how much the times that owners expect are multiplied.
func (q *queueState) overrunFactor() float64 {
	if q.set.Overrun > 0 {
		return q.set.Overrun
	}
	return q.overrun.Factor()
}

// runs reports whether the job of a unit runs.
func (u *unit) runs() bool {
	return (u.Phase == Dequeued || u.Phase == Running) && !u.Evicted && !u.Stopped && !u.Over && u.dequeuedAt != 0
}

// learn records how long a unit ran, before it no longer runs. If its job has not ended, that only says something if it
// has run for longer than expected: otherwise, a job that is suspended before its end would hide how long it runs.
func (s *Scheduler) learn(u *unit, ended bool, now time.Time) {
	if u.Expected == 0 || u.queue == nil || u.queue.set.Overrun > 0 || !u.runs() {
		return
	}
	ran, q := now.Sub(u.dequeuedAt.time()), u.queue
	if !ended && ran <= u.Expected.Duration() {
		return
	}
	if q.overrun.Ended(u.Expected.Duration(), max(ran, 0)) && q.Policy.ByLimit {
		s.overran = append(s.overran, q)
	}
}

// reorder orders the queues again whose overruns have changed.
func (s *Scheduler) reorder(now time.Time) {
	for _, q := range s.overran {
		if s.queues[q.name] == q {
			s.settleUnitsOf(q, now)
		}
	}
	s.overran = nil
}
