package scheduler

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

const (
	// TellAfter is how long a unit waits before it says why.
	TellAfter = time.Second
	// TellInterval is the least time between two changes of what it says.
	TellInterval = 30 * time.Second
)

// shows tells whether that is what the unit shows its users. Of what it was told
// before the start only the reason is known, and for which group.
func (u *unit) shows(c quota.Cause) bool {
	if u.restored {
		return u.toldCause().Reason == c.Reason && (u.line == nil || u.Quota == u.line.Group.Path())
	}
	return u.toldCause() == c
}

// refusal is why the unit waits now; nil when it does not, or was not tried yet.
func (s *Scheduler) refusal(u *unit, now time.Time) *quota.Refusal {
	if u.Phase != Waiting || u.assumed {
		return nil
	}
	if why := u.keptOut(); why != nil {
		return why
	}
	switch {
	case u.line == nil:
		return nil
	case instantOf(now) < u.requeueAt:
		return &quota.Refusal{Reason: wellknown.ReasonBackoff, Sentence: fmt.Sprintf(
			"released %d times and stopped each time; stands in line again at %s", u.Attempts, u.requeueAt.time().UTC().Format(time.RFC3339))}
	}
	shape := u.item.Shape()
	if shape == nil {
		return nil
	}
	if r := shape.Refusal(); r != nil && r.Final() {
		return r
	}
	if front := u.line.Front(); u.line.Policy == queue.Block && front != nil && front != &u.item {
		return &quota.Refusal{Reason: wellknown.ReasonNotAtFront, Sentence: fmt.Sprintf(
			"behind %s in queue %s, whose policy Block lets nothing pass its front", front.Key, u.line.name)}
	}
	return shape.Refusal()
}

// keptOut is why the unit may not stand in line; nil when it may.
func (u *unit) keptOut() *quota.Refusal {
	switch {
	case u.Held != nil:
		return u.Held
	case u.homeless != nil:
		return u.homeless
	case u.line != nil && u.line.set.Stop != NotStopped:
		return &quota.Refusal{Reason: wellknown.ReasonQueueStopped, Sentence: fmt.Sprintf(
			"queue %s is stopped; it goes on when an administrator sets its spec.stop to None", u.line.name)}
	default:
		return nil
	}
}

// tellLater sees to it that the unit shows why it waits, as soon as the intervals
// allow.
func (s *Scheduler) tellLater(u *unit, now time.Time) {
	if u.since == 0 || u.HeldTold && u.Held != nil {
		u.tellAt = 0
		s.schedule(u, now)
		return
	}
	u.tellAt = u.since.plus(TellAfter)
	if u.toldAt != 0 {
		u.tellAt = u.toldAt.plus(TellInterval)
	}
	if r := s.refusal(u, now); r != nil && r.Impossible() && u.toldCause().Reason != r.Reason {
		u.tellAt = 0
	}
	u.tellAt = max(u.tellAt, instantOf(now))
	s.schedule(u, now)
}

// schedule sets the unit's timer to the first time at which it needs a look.
func (s *Scheduler) schedule(u *unit, now time.Time) {
	at := u.tellAt
	if u.Phase == Waiting && instantOf(now) < u.requeueAt && (at == 0 || u.requeueAt < at) {
		at = u.requeueAt
	}
	if end := u.endsAt(); end > instantOf(now) && (at == 0 || end < at) {
		at = end
	}
	s.timers.set(u, at)
}

// retell has all items of a shape told of its cause when it has been another than
// they were last told for a while. A cause that comes and goes is not worth a write
// for each of them.
func (s *Scheduler) retell(l *line, shape *queue.Shape, now time.Time) {
	due := l.retelling[shape]
	switch {
	case shape.Told != nil && *shape.Told == shape.Cause():
		if due != nil {
			s.timers.retelling.Remove(due)
			delete(l.retelling, shape)
		}
	case shape.Told == nil: // the items' own timers tell them for the first time
		shape.Told = s.causes.one(shape.Cause())
	case due == nil:
		due = &retelling{at: instantOf(now.Add(TellInterval)), line: l, shape: shape}
		l.retelling[shape] = due
		s.timers.retelling.Set(due)
	}
}

// runTimers does what is due, and tells whether anything was.
//
// What is due at one time is taken out first: what looking at it sets for this very
// time waits until units that came back in line have been tried.
func (s *Scheduler) runTimers(now time.Time) bool {
	retold, units := s.timers.due(instantOf(now))
	for _, r := range retold {
		delete(r.line.retelling, r.shape)
		r.shape.Told = s.causes.one(r.shape.Cause())
		for _, item := range r.shape.Items() {
			s.tellLater(s.units[item.Key], now)
		}
	}
	for _, u := range units {
		if !u.gone {
			s.look(u, now)
		}
	}
	return len(retold)+len(units) > 0
}

// look does what the unit's timer was for.
func (s *Scheduler) look(u *unit, now time.Time) {
	telling := u.tellAt != 0 && u.tellAt <= instantOf(now)
	backInLine := u.requeueAt != 0 && u.requeueAt <= instantOf(now) && u.item.Shape() == nil
	if backInLine || s.eviction(u, now) != nil {
		s.settle(u, now)
		if backInLine && u.item.Shape() != nil {
			return // it is tried before it is told why it waits
		}
	}
	if !telling {
		s.schedule(u, now)
		return
	}
	u.tellAt = 0
	s.schedule(u, now)
	if r := s.refusal(u, now); r != nil && !u.shows(r.Cause()) && !s.wavers(u, r) {
		s.outbox.want(u, Explain)
		if r.Impossible() {
			s.outbox.wantFirst(u)
		}
	}
}

// wavers tells whether the cause has not lasted long enough to replace the one that
// the unit, like all of its shape, shows. All of them are told once it has.
func (s *Scheduler) wavers(u *unit, r *quota.Refusal) bool {
	shape := u.item.Shape()
	return shape != nil && r == shape.Refusal() && shape.Told != nil && *shape.Told != shape.Cause() && u.shows(*shape.Told)
}
