package scheduler

import (
	"cmp"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
)

// timers asks for looks at units, and at shapes whose cause has changed.
type timers struct {
	units     *queue.Heap[*unit]
	retelling *queue.Heap[*retelling]
}

// retelling asks to have all items of a shape told of its cause.
type retelling struct {
	at    instant
	line  *line
	shape *queue.Shape
	place int
}

func newTimers() timers {
	return timers{
		// Those of one time in any order: most come and go before theirs, and moving one
		// among equals would cost more than all else that it costs. See due.
		units: queue.NewHeap(func(a, b *unit) bool { return a.lookAt < b.lookAt }, func(u *unit) *int { return &u.timer }),
		retelling: queue.NewHeap(func(a, b *retelling) bool { return a.before(b) },
			func(r *retelling) *int { return &r.place }),
	}
}

func (r *retelling) before(other *retelling) bool {
	by := cmp.Or(cmp.Compare(r.at, other.at), cmp.Compare(r.line.name, other.line.name), cmp.Compare(r.shape.Key(), other.shape.Key()))
	return by < 0
}

// set has the unit looked at, at a time; 0 for not at all.
func (t timers) set(u *unit, at instant) {
	if at == u.lookAt {
		return
	}
	if at == 0 {
		t.units.Remove(u)
		u.lookAt = 0
		return
	}
	u.lookAt = at
	t.units.Set(u)
}

// next is when the first look is due; the zero time when none is asked for.
func (t timers) next() time.Time {
	var at instant
	if u, ok := t.units.Top(); ok {
		at = u.lookAt
	}
	if r, ok := t.retelling.Top(); ok && (at == 0 || r.at < at) {
		at = r.at
	}
	return at.time()
}

// due takes out what is due, by time and then by name.
func (t timers) due(now instant) (retold []*retelling, units []*unit) {
	for r, ok := t.retelling.Top(); ok && r.at <= now; r, ok = t.retelling.Top() {
		t.retelling.Remove(r)
		retold = append(retold, r)
	}
	for u, ok := t.units.Top(); ok && u.lookAt <= now; u, ok = t.units.Top() {
		t.units.Remove(u)
		units = append(units, u)
	}
	slices.SortFunc(units, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.lookAt, b.lookAt), cmp.Compare(a.key(), b.key()))
	})
	for _, u := range units {
		u.lookAt = 0
	}
	return retold, units
}
