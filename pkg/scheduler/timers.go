package scheduler

import (
	"cmp"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
)

// timers holds the timers of all units.
type timers struct {
	units *queue.Heap[*unit]
	// checks is when the first admission check of a Reserved unit is late, if one can be.
	checks map[*unit]instant
}

// timer is the part of a unit that belongs to the timers.
type timer struct {
	// at is when the timer ends; 0 means never.
	at    instant
	place int32
}

func newTimers() timers {
	return timers{
		checks: map[*unit]instant{},
		// Timers that end at the same time are in any order. Most timers are removed before they end, and ordering
		// equals would cost more than everything else. See due.
		units: queue.NewHeap(func(a, b *unit) bool { return a.timer.at < b.timer.at }, func(u *unit) *int32 { return &u.timer.place }),
	}
}

// schedule sets the timer of the unit to the first time at which it has something due.
func (s *Scheduler) schedule(u *unit, now time.Time) {
	at := earliest(u.shown.checkAt, s.podlessAt(u, now), s.timers.checks[u], s.outbox.denied[u])
	if u.Phase == Waiting && instantOf(now) < u.requeueAt {
		at = earliest(at, u.requeueAt)
	}
	if end := u.endsAt(); end > instantOf(now) {
		at = earliest(at, end)
	}
	if deadline := u.podsDeadline(); deadline > instantOf(now) && !u.Evicted && !u.Stopped && !u.Over {
		at = earliest(at, deadline)
	}
	if end := u.expiresAt(now); end > instantOf(now) {
		at = earliest(at, end)
	}
	if forsaken := s.forsakenAt(u); forsaken > instantOf(now) {
		at = earliest(at, forsaken)
	}
	if u.leaving != nil {
		at = earliest(at, u.leaving.checkAt)
	}
	s.timers.set(u, at)
}

// set sets the timer of the unit; 0 removes it.
func (t timers) set(u *unit, at instant) {
	if at == u.timer.at {
		return
	}
	if at == 0 {
		t.units.Remove(u)
		u.timer.at = 0
		return
	}
	u.timer.at = at
	t.units.Set(u)
}

// next returns when the first timer ends; 0 if there is none.
func (t timers) next() instant {
	if u, ok := t.units.Top(); ok {
		return u.timer.at
	}
	return 0
}

// due removes and returns the units whose timers have ended, ordered by time and then by name.
func (t timers) due(now instant) (units []*unit) {
	for u, ok := t.units.Top(); ok && u.timer.at <= now; u, ok = t.units.Top() {
		t.units.Remove(u)
		units = append(units, u)
	}
	slices.SortFunc(units, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.timer.at, b.timer.at), cmp.Compare(a.key(), b.key()))
	})
	for _, u := range units {
		u.timer.at = 0
	}
	return units
}
