package scheduler

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

const (
	// TellAfter is how long a unit waits before it says why.
	TellAfter = time.Second
	// TellInterval is the least time between two changes of what it says.
	TellInterval = 30 * time.Second
)

// told is what a unit shows its users.
type told struct {
	cause quota.Cause
	// restored from the unit itself, which shows the reason alone.
	restored bool
	at       time.Time
}

// shows tells whether that is what the unit shows its users. Of what it was told
// before the start only the reason is known, and for which group.
func (u *unit) shows(c quota.Cause) bool {
	if u.told.restored {
		return u.told.cause.Reason == c.Reason && (u.line == nil || u.Quota == u.line.Group.Path())
	}
	return u.told.cause == c
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
	case now.Before(u.RequeueAt):
		return &quota.Refusal{Reason: ReasonBackoff, Sentence: fmt.Sprintf(
			"released %d times and stopped each time; stands in line again at %s", u.Attempts, u.RequeueAt.UTC().Format(time.RFC3339))}
	}
	shape := u.item.Shape()
	if shape == nil {
		return nil
	}
	if r := shape.Refusal(); r != nil && r.Final() {
		return r
	}
	if front := u.line.Front(); u.line.Policy == queue.Block && front != nil && front != &u.item {
		return &quota.Refusal{Reason: ReasonNotAtFront, Sentence: fmt.Sprintf(
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
		return &quota.Refusal{Reason: ReasonQueueStopped, Sentence: fmt.Sprintf(
			"queue %s is stopped; it goes on when an administrator sets its spec.stop to None", u.line.name)}
	default:
		return nil
	}
}

// tellLater sees to it that the unit shows why it waits, as soon as the intervals
// allow.
func (s *Scheduler) tellLater(u *unit, now time.Time) {
	if u.since.IsZero() || u.HeldTold && u.Held != nil {
		u.tellAt = time.Time{}
		s.schedule(u, now)
		return
	}
	u.tellAt = u.since.Add(TellAfter)
	if !u.told.at.IsZero() {
		u.tellAt = u.told.at.Add(TellInterval)
	}
	if r := s.refusal(u, now); r != nil && r.Impossible() && u.told.cause.Reason != r.Reason {
		u.tellAt = now
	}
	if u.tellAt.Before(now) {
		u.tellAt = now
	}
	s.schedule(u, now)
}

// timer asks for a look at a unit, or at all items of a shape.
type timer struct {
	at    time.Time
	key   string
	unit  *unit
	line  *line
	shape *queue.Shape
	place int
}

func newTimers() *queue.Heap[*timer] {
	return queue.NewHeap(func(a, b *timer) bool {
		if !a.at.Equal(b.at) {
			return a.at.Before(b.at)
		}
		return a.key < b.key
	}, func(t *timer) *int { return &t.place })
}

// schedule sets the unit's timer to the first time at which it needs a look.
func (s *Scheduler) schedule(u *unit, now time.Time) {
	at := u.tellAt
	if u.Phase == Waiting && now.Before(u.RequeueAt) && (at.IsZero() || u.RequeueAt.Before(at)) {
		at = u.RequeueAt
	}
	if end := u.endsAt(); end.After(now) && (at.IsZero() || end.Before(at)) {
		at = end
	}
	if at.IsZero() {
		s.timers.Remove(&u.timer)
		return
	}
	u.timer.at = at
	s.timers.Set(&u.timer)
}

// retell has all items of a shape told of its cause when it has been another than
// they were last told for a while. A cause that comes and goes is not worth a write
// for each of them.
func (s *Scheduler) retell(l *line, shape *queue.Shape, now time.Time) {
	due := l.retelling[shape]
	switch {
	case shape.Told == shape.Cause():
		if due != nil {
			s.timers.Remove(due)
			delete(l.retelling, shape)
		}
	case shape.Told == quota.Cause{}: // the items' own timers tell them for the first time
		shape.Told = shape.Cause()
	case due == nil:
		due = &timer{at: now.Add(TellInterval), line: l, shape: shape}
		l.retelling[shape] = due
		s.timers.Set(due)
	}
}

// runTimers does what is due, and tells whether anything was.
//
// What is due at one time is taken out first: what looking at it sets for this very
// time waits until units that came back in line have been tried.
func (s *Scheduler) runTimers(now time.Time) bool {
	var due []*timer
	for t, ok := s.timers.Top(); ok && !t.at.After(now); t, ok = s.timers.Top() {
		s.timers.Remove(t)
		due = append(due, t)
	}
	for _, t := range due {
		if t.unit != nil {
			s.look(t.unit, now)
			continue
		}
		delete(t.line.retelling, t.shape)
		t.shape.Told = t.shape.Cause()
		for _, item := range t.shape.Items() {
			s.tellLater(s.units[item.Key], now)
		}
	}
	return len(due) > 0
}

// look does what the unit's timer was for.
func (s *Scheduler) look(u *unit, now time.Time) {
	telling := !u.tellAt.IsZero() && !u.tellAt.After(now)
	backInLine := !u.RequeueAt.IsZero() && !u.RequeueAt.After(now) && u.item.Shape() == nil
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
	u.tellAt = time.Time{}
	s.schedule(u, now)
	if r := s.refusal(u, now); r != nil && !u.shows(r.Cause()) && !s.wavers(u, r) {
		s.want(u, Explain)
	}
}

// wavers tells whether the cause has not lasted long enough to replace the one that
// the unit, like all of its shape, shows. All of them are told once it has.
func (s *Scheduler) wavers(u *unit, r *quota.Refusal) bool {
	shape := u.item.Shape()
	return shape != nil && r == shape.Refusal() && shape.Told != shape.Cause() && u.shows(shape.Told)
}
