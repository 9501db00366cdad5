package scheduler

import (
	"cmp"
	"time"
	"unique"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

const (
	// ReasonDelay is how long a unit waits before it shows a reason.
	ReasonDelay = time.Second
	// ReasonInterval is the shortest time between two changes of the reason of a unit.
	ReasonInterval = 30 * time.Second
)

// explainer stores which cause of waiting each unit shows, and decides when to compare it with the
// cause for which the unit waits now. It requests no writes: an explanation is composed when it is
// sent and is recorded with show.
//
// Units of one shape are refused for the same cause. A cause that lasts only for a short time is not
// worth a write for each of them, so a new cause must last for ReasonInterval before it replaces the
// cause that they show.
//
// Invariants:
//
//   - Units that show the same cause share one copy of it, because many units share a few causes.
//   - A shape has at most one timer, which is in both changes and the causeChanges of its queue.
type explainer struct {
	// changes are the shapes with a new cause, ordered by when it is reported for their items.
	changes *queue.Heap[*causeChange]
}

// shown is the part of a unit that belongs to the explainer.
type shown struct {
	// cause is the cause that the unit shows, since at; the zero Handle if none.
	cause unique.Handle[quota.Cause]
	at    instant
	// waitingSince is when the unit began to wait; 0 if it does not wait.
	waitingSince instant
	// checkAt is when to compare the cause with the current one; 0 means never.
	checkAt instant
	// restored is whether the cause was read from the unit, which contains only its reason.
	restored bool
}

// causeChange is the timer of a shape with a new cause.
type causeChange struct {
	at    instant
	queue *queueState
	shape *queue.Shape
	place int
}

func newExplainer() explainer {
	return explainer{
		changes: queue.NewHeap(func(a, b *causeChange) bool { return a.before(b) },
			func(c *causeChange) *int { return &c.place }),
	}
}

func (c *causeChange) before(other *causeChange) bool {
	by := cmp.Or(cmp.Compare(c.at, other.at), cmp.Compare(c.queue.name, other.queue.name), cmp.Compare(c.shape.Key(), other.shape.Key()))
	return by < 0
}

// show records the cause that the unit shows from now on.
func (e *explainer) show(u *unit, cause quota.Cause, now time.Time) {
	u.shown.cause, u.shown.at, u.shown.restored = one(cause), instantOf(now), false
}

// restore records the reason that was read from the unit.
func (e *explainer) restore(u *unit, reason wellknown.Reason) {
	u.shown.cause, u.shown.at, u.shown.restored = one(quota.Cause{Reason: reason}), 0, true
}

// one returns the shared copy of the cause; the zero Handle for the zero Cause.
func one(cause quota.Cause) unique.Handle[quota.Cause] {
	if cause == (quota.Cause{}) {
		return unique.Handle[quota.Cause]{}
	}
	return unique.Make(cause)
}

// causeOf reverts one.
func causeOf(handle unique.Handle[quota.Cause]) quota.Cause {
	if handle == (unique.Handle[quota.Cause]{}) {
		return quota.Cause{}
	}
	return handle.Value()
}

// clear records that the unit shows no cause.
func (s *shown) clear() { s.cause, s.at, s.restored = one(quota.Cause{}), 0, false }

// startWaiting records that the unit waits. The unit may already be waiting.
func (s *shown) startWaiting(now time.Time) {
	if s.waitingSince == 0 {
		s.waitingSince = instantOf(now)
	}
}

// stopWaiting records that the unit does not wait.
func (s *shown) stopWaiting() { s.waitingSince, s.checkAt = 0, 0 }

// last returns the cause that the unit shows; the zero Cause if none.
func (s *shown) last() quota.Cause {
	return causeOf(s.cause)
}

// shows reports whether the unit shows the cause. Of a cause that was written before the start,
// only the reason and the group are known, so that one with a detail is written again.
func (u *unit) shows(c quota.Cause) bool {
	if u.shown.restored {
		return c.Detail == "" && u.shown.last().Reason == c.Reason && (u.queue == nil || u.Quota == u.queue.Group.Path())
	}
	return u.shown.last() == c
}

// nextCheck returns when to compare the cause that the unit shows with the current one: as soon as the
// intervals allow, or at once if the unit can never fit; 0 means never.
func (u *unit) nextCheck(now time.Time) instant {
	if u.shown.waitingSince == 0 || u.HeldReported && u.Held != nil {
		return 0
	}
	at := u.shown.waitingSince.plus(ReasonDelay)
	switch {
	case u.shown.at == 0:
	case u.Phase == Reserved:
		at = u.shown.at.plus(CheckInterval)
	default:
		at = u.shown.at.plus(ReasonInterval)
	}
	if r := u.refusal(now); r != nil && r.Impossible() && u.shown.last().Reason != r.Reason {
		at = 0
	}
	return max(at, instantOf(now))
}

// unexplained returns why the unit waits if the unit must be updated to show it; nil otherwise.
func (u *unit) unexplained(now time.Time) *quota.Refusal {
	r := u.refusal(now)
	if r == nil || u.shows(r.Cause()) || u.causeUnsettled(r) {
		return nil
	}
	return r
}

// causeUnsettled reports whether the cause has not lasted long enough to replace the cause that the
// units of the shape show.
func (u *unit) causeUnsettled(r *quota.Refusal) bool {
	shape := u.item.Shape()
	if shape == nil || r != shape.Refusal() {
		return false
	}
	shown := causeOf(shape.Shown)
	return shown != (quota.Cause{}) && shown != shape.Cause() && u.shows(shown)
}

// refused processes that a shape of the queue was refused, possibly for another cause than the one that
// its items show.
func (e *explainer) refused(l *queueState, shape *queue.Shape, now time.Time) {
	change := l.causeChanges[shape]
	switch shown := causeOf(shape.Shown); {
	case shown == shape.Cause():
		e.stop(change)
	case shown == quota.Cause{}: // the timers of the items report the first cause
		shape.Shown = one(shape.Cause())
	case change == nil:
		change = &causeChange{at: instantOf(now.Add(ReasonInterval)), queue: l, shape: shape}
		l.causeChanges[shape] = change
		e.changes.Set(change)
	}
}

// forget makes the next cause of the shape count as its first one.
func (e *explainer) forget(l *queueState, shape *queue.Shape) {
	e.stop(l.causeChanges[shape])
	shape.Shown = one(quota.Cause{})
}

// forgetQueue removes the timers of all shapes of the queue.
func (e *explainer) forgetQueue(l *queueState) {
	for _, change := range l.causeChanges {
		e.stop(change)
	}
}

// stop removes a timer. It does nothing if the timer is nil.
func (e *explainer) stop(change *causeChange) {
	if change == nil {
		return
	}
	e.changes.Remove(change)
	delete(change.queue.causeChanges, change.shape)
}

// next returns when the first timer of a shape ends; 0 if there is none.
func (e *explainer) next() instant {
	if change, ok := e.changes.Top(); ok {
		return change.at
	}
	return 0
}

// due removes and returns the shapes whose new cause has lasted long enough, ordered by time and
// then by name.
func (e *explainer) due(now instant) (shapes []*queue.Shape) {
	for change, ok := e.changes.Top(); ok && change.at <= now; change, ok = e.changes.Top() {
		e.stop(change)
		change.shape.Shown = one(change.shape.Cause())
		shapes = append(shapes, change.shape)
	}
	return shapes
}
