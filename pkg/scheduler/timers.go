package scheduler

import (
	"cmp"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
)

// timers asks for looks at units.
type timers struct{ units *queue.Heap[*unit] }

// timer is a unit's part of the timers.
type timer struct {
	// at is when to look at the unit; 0 for never.
	at    instant
	place int
}

func newTimers() timers {
	return timers{
		// Those of one time in any order: most come and go before theirs, and moving one
		// among equals would cost more than all else that it costs. See due.
		units: queue.NewHeap(func(a, b *unit) bool { return a.timer.at < b.timer.at }, func(u *unit) *int { return &u.timer.place }),
	}
}

// schedule sets the unit's timer to the first time at which it needs a look.
func (t timers) schedule(u *unit, now time.Time) {
	at := u.shown.checkAt
	if u.Phase == Waiting && instantOf(now) < u.requeueAt {
		at = earliest(at, u.requeueAt)
	}
	if end := u.endsAt(); end > instantOf(now) {
		at = earliest(at, end)
	}
	t.set(u, at)
}

// set has the unit looked at, at a time; 0 for not at all.
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

// next is when the first look is due; 0 when none is asked for.
func (t timers) next() instant {
	if u, ok := t.units.Top(); ok {
		return u.timer.at
	}
	return 0
}

// due takes out what is due, by time and then by name.
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
