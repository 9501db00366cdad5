package scheduler

import (
	"cmp"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

const (
	// TellAfter is how long a unit waits before it says why.
	ReasonDelay = time.Second
	// TellInterval is the least time between two changes of what it says.
	ReasonInterval = 30 * time.Second
)

// explainer keeps what units show their users of why they wait, and says when that is to
// be compared with why they wait now. It asks for no write: an explanation is composed
// when it is sent, and noted by show.
//
// Units of one shape are refused for the same cause. A cause that comes and goes is not
// worth a write for each of them, so a new one has to last for TellInterval before it
// replaces the one that they show.
//
// Invariants:
//
//   - Units that show the same cause share one Cause.
//   - A shape has at most one timer, which is both in changes and in its line's
//     causeChanges.
type explainer struct {
	// causes keeps one of each Cause: many units share few.
	causes map[quota.Cause]*quota.Cause
	// changes are the shapes with a new cause, by when their items are reported.
	changes *queue.Heap[*causeChange]
}

// shown is the explainer's part of a unit.
type shown struct {
	// cause that the unit shows its users, since at; nil for none.
	cause *quota.Cause
	at    instant
	// waitingSince is when the unit began to wait; 0 when it does not wait.
	waitingSince instant
	// checkAt is when to compare the cause with why the unit waits; 0 for never.
	checkAt instant
	// restored: the cause comes from the unit itself, which shows the reason alone.
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
		causes: map[quota.Cause]*quota.Cause{},
		changes: queue.NewHeap(func(a, b *causeChange) bool { return a.before(b) },
			func(c *causeChange) *int { return &c.place }),
	}
}

func (c *causeChange) before(other *causeChange) bool {
	by := cmp.Or(cmp.Compare(c.at, other.at), cmp.Compare(c.queue.name, other.queue.name), cmp.Compare(c.shape.Key(), other.shape.Key()))
	return by < 0
}

// show notes what the unit shows its users from now on.
func (e *explainer) show(u *unit, cause quota.Cause, now time.Time) {
	u.shown.cause, u.shown.at, u.shown.restored = e.one(cause), instantOf(now), false
}

// restore notes what the unit says itself that it shows.
func (e *explainer) restore(u *unit, reason wellknown.Reason) {
	u.shown.cause, u.shown.at, u.shown.restored = e.one(quota.Cause{Reason: reason}), 0, true
}

// one is the shared copy of the cause; nil for the zero Cause.
func (e *explainer) one(cause quota.Cause) *quota.Cause {
	if cause == (quota.Cause{}) {
		return nil
	}
	if e.causes[cause] == nil {
		e.causes[cause] = &cause
	}
	return e.causes[cause]
}

// clear notes that the unit shows no cause.
func (s *shown) clear() { s.cause, s.at, s.restored = nil, 0, false }

// startWaiting notes that the unit waits, as it may have before.
func (s *shown) startWaiting(now time.Time) {
	if s.waitingSince == 0 {
		s.waitingSince = instantOf(now)
	}
}

// stopWaiting notes that there is nothing to explain.
func (s *shown) stopWaiting() { s.waitingSince, s.checkAt = 0, 0 }

// last is the cause that the unit shows; the zero Cause for none.
func (s *shown) last() quota.Cause {
	if s.cause == nil {
		return quota.Cause{}
	}
	return *s.cause
}

// shows reports whether that is what the unit shows its users. Of what it was told
// before the start only the reason is known, and for which group.
func (u *unit) shows(c quota.Cause) bool {
	if u.shown.restored {
		return u.shown.last().Reason == c.Reason && (u.queue == nil || u.Quota == u.queue.Group.Path())
	}
	return u.shown.last() == c
}

// nextCheck is when to compare what the unit shows with why it waits: as soon as the
// intervals allow, and at once when it can never fit; 0 for never.
func (u *unit) nextCheck(now time.Time) instant {
	if u.shown.waitingSince == 0 || u.HeldReported && u.Held != nil {
		return 0
	}
	at := u.shown.waitingSince.plus(ReasonDelay)
	if u.shown.at != 0 {
		at = u.shown.at.plus(ReasonInterval)
	}
	if r := u.refusal(now); r != nil && r.Impossible() && u.shown.last().Reason != r.Reason {
		at = 0
	}
	return max(at, instantOf(now))
}

// unexplained is why the unit waits, where it shows something else and is to be told; nil
// otherwise.
func (u *unit) unexplained(now time.Time) *quota.Refusal {
	r := u.refusal(now)
	if r == nil || u.shows(r.Cause()) || u.causeUnsettled(r) {
		return nil
	}
	return r
}

// causeUnsettled reports whether the cause has not lasted long enough to replace the one that
// the unit, like all of its shape, shows. All of them are reported once it has.
func (u *unit) causeUnsettled(r *quota.Refusal) bool {
	shape := u.item.Shape()
	return shape != nil && r == shape.Refusal() && shape.Shown != nil && *shape.Shown != shape.Cause() && u.shows(*shape.Shown)
}

// refused takes in that a shape of the line was refused, maybe for another cause than
// its items were last told.
func (e *explainer) refused(l *queueState, shape *queue.Shape, now time.Time) {
	change := l.causeChanges[shape]
	switch {
	case shape.Shown != nil && *shape.Shown == shape.Cause():
		e.stop(change)
	case shape.Shown == nil: // the items' own timers have them reported for the first time
		shape.Shown = e.one(shape.Cause())
	case change == nil:
		change = &causeChange{at: instantOf(now.Add(ReasonInterval)), queue: l, shape: shape}
		l.causeChanges[shape] = change
		e.changes.Set(change)
	}
}

// forget has the items of the shape reported the next cause as of a first one.
func (e *explainer) forget(l *queueState, shape *queue.Shape) {
	e.stop(l.causeChanges[shape])
	shape.Shown = nil
}

// forgetLine drops all timers of the line's shapes.
func (e *explainer) forgetLine(l *queueState) {
	for _, change := range l.causeChanges {
		e.stop(change)
	}
}

// stop drops a timer, if there is one.
func (e *explainer) stop(change *causeChange) {
	if change == nil {
		return
	}
	e.changes.Remove(change)
	delete(change.queue.causeChanges, change.shape)
}

// next is when the first timer of a shape ends; 0 when there is none.
func (e *explainer) next() instant {
	if change, ok := e.changes.Top(); ok {
		return change.at
	}
	return 0
}

// due takes out the shapes whose items are to be reported a cause that has lasted, by time
// and then by name.
func (e *explainer) due(now instant) (shapes []*queue.Shape) {
	for change, ok := e.changes.Top(); ok && change.at <= now; change, ok = e.changes.Top() {
		e.stop(change)
		change.shape.Shown = e.one(change.shape.Cause())
		shapes = append(shapes, change.shape)
	}
	return shapes
}
