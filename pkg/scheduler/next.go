package scheduler

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// FlushInterval is how often parked shapes are tried though nothing was freed.
// It is a safety net: what it finds is a lost wake-up, counted by Rescued.
const FlushInterval = 5 * time.Minute

// Next decides what can be decided at a time. It returns the writes that are
// wanted, and when to call it again if nothing happens before; zero: never.
func (s *Scheduler) Next(now time.Time) (Plan, time.Time) {
	s.waitIndex.Begin(now)
	// A unit that is to be reported why it waits has to have been tried, and one whose
	// time has come has to be tried: so first the one, then the other, and again.
	for again := true; again; {
		s.admit(now)
		again = s.watchFronts(now)
		again = s.runTimers(now) || again
		again = s.flush(now) || again
	}
	if s.waitIndex.Len() > 0 && s.flushAt.IsZero() {
		s.flushAt = now.Add(FlushInterval)
	}
	plan := s.outbox.plan(now, s.compose)
	return plan, s.wakeTime()
}

// admit gives quota to waiting units until nothing that is worth trying is left.
func (s *Scheduler) admit(now time.Time) {
	if s.tournament == nil {
		return
	}
	for _, l := range s.tournament.competing() {
		l.Begin(now)
		s.activate(l)
	}
	for {
		for len(s.freed) > 0 || len(s.unproven) > 0 {
			s.wakeFreed() // who is refused may have paused borrowing, which goes on then
			s.prove(now)
		}
		l := s.tournament.next()
		if l == nil {
			return
		}
		u := s.units[l.tried.Key]
		s.take(l, u)
		u.assumed = true
		s.charge(u, l.Group)
		s.count(u, l, u.countedPhase())
		s.outbox.want(u, Dequeue)
		u.shown.stopWaiting()
		s.timers.set(u, 0)
	}
}

// wakeFreed has those lines compete for which the freed spaces may have room.
func (s *Scheduler) wakeFreed() {
	for _, space := range s.freed {
		s.waitIndex.Wake(space, func(q *queue.Queue) { s.activate(s.queues[q.Group.Queue()]) })
	}
	s.freed = s.freed[:0]
	clear(s.isFreed)
}

// prove refuses items that do not fit until what every line tries does: one that does
// not would speak for its line with a share and a guarantee that are not those of the
// item behind it, which may have its room.
func (s *Scheduler) prove(now time.Time) {
	for len(s.unproven) > 0 {
		l := s.unproven[len(s.unproven)-1]
		s.unproven = s.unproven[:len(s.unproven)-1]
		l.unproven = false
		if l.tried == nil {
			continue
		}
		shape := l.tried.Shape()
		if refusal := l.Group.Fits(shape.Demand); refusal != nil {
			s.refuse(l, shape, refusal, now)
		}
	}
}

func (s *Scheduler) unprove(l *queueState) {
	if !l.unproven {
		l.unproven = true
		s.unproven = append(s.unproven, l)
	}
}

// take takes a unit out of line because it has its room.
func (s *Scheduler) take(l *queueState, u *unit) {
	shape := u.item.Shape()
	l.Take(&u.item)
	s.activate(l)
	if shape.Len() == 0 {
		s.unclaim(l, shape)
	}
}

func (s *Scheduler) refuse(l *queueState, shape *queue.Shape, refusal *quota.Refusal, now time.Time) {
	l.Refuse(shape, refusal, now)
	s.activate(l)
	if len(refusal.Owed) > 0 {
		s.claim(l, shape, refusal.Owed)
	} else {
		s.unclaim(l, shape)
	}
	s.explainer.refused(l, shape, now)
}

// flush tries what is parked, as a safety net, once all that is known to be worth
// trying was tried. It reports whether it found anything.
func (s *Scheduler) flush(now time.Time) (found bool) {
	if s.flushAt.IsZero() || now.Before(s.flushAt) {
		return false
	}
	s.flushAt = time.Time{}
	s.flushes++
	for _, shape := range s.waitIndex.All() {
		if l := s.queues[shape.Queue().Group.Queue()]; l.Group.Fits(shape.Demand) == nil {
			s.rescued++
			l.Retry(shape)
			s.activate(l)
			found = true
		}
	}
	return found
}

// Flushes counts how often the safety net was cast.
func (s *Scheduler) Flushes() int { return s.flushes }

// Rescued counts the shapes that the safety net found waiting though they fit.
// It stays 0 unless there is a defect.
func (s *Scheduler) Rescued() int { return s.rescued }

// watchFronts has the units reported that came to, or lost, the front of a line in
// which only the front unit is tried. Only who is in front has claims there: one that
// may not go however much room there is would keep it from others for nothing. It
// reports whether claims have changed.
func (s *Scheduler) watchFronts(now time.Time) (changed bool) {
	lines := s.frontsToCheck
	if s.lender != nil { // what the front lacks depends on what others have
		lines = s.blocking
	}
	// All new claims come before any is given up: what changes hands was never free.
	for _, l := range lines {
		changed = s.claimForFront(l) || changed
	}
	for _, l := range lines {
		changed = s.unclaimBehindFront(l) || changed
		var front *unit
		if item := l.Front(); item != nil {
			front = s.units[item.Key]
		}
		if front == l.front {
			continue
		}
		for _, u := range []*unit{l.front, front} {
			if u != nil && !u.gone {
				s.explainLater(u, now)
			}
		}
		l.front = front
	}
	for _, l := range s.frontsToCheck {
		l.checkFront = false
	}
	s.frontsToCheck = s.frontsToCheck[:0]
	return changed
}

// runTimers does what is due, and reports whether anything was.
//
// What is due at one time is taken out first: what looking at it sets for this very
// time waits until units that came back in line have been tried.
func (s *Scheduler) runTimers(now time.Time) bool {
	shapes, units := s.explainer.due(instantOf(now)), s.timers.due(instantOf(now))
	for _, shape := range shapes {
		for _, item := range shape.Items() {
			s.explainLater(s.units[item.Key], now)
		}
	}
	for _, u := range units {
		if !u.gone {
			s.look(u, now)
		}
	}
	return len(shapes)+len(units) > 0
}

// look does what the unit's timer was for.
func (s *Scheduler) look(u *unit, now time.Time) {
	checking := u.shown.checkAt != 0 && u.shown.checkAt <= instantOf(now)
	backInLine := u.requeueAt != 0 && u.requeueAt <= instantOf(now) && u.item.Shape() == nil
	if backInLine || u.eviction(now) != nil {
		s.settle(u, now)
		if backInLine && u.item.Shape() != nil {
			return // it is tried first: why it waits is known after that
		}
	}
	if !checking {
		s.timers.schedule(u, now)
		return
	}
	u.shown.checkAt = 0
	s.timers.schedule(u, now)
	if r := u.unexplained(now); r != nil {
		s.outbox.want(u, Explain)
		if r.Impossible() {
			s.outbox.wantFirst(u)
		}
	}
}

// explainLater has what the unit shows compared with why it waits, as soon as the
// intervals allow.
func (s *Scheduler) explainLater(u *unit, now time.Time) {
	u.shown.checkAt = u.nextCheck(now)
	s.timers.schedule(u, now)
}

// compose makes the write of a kind that is wanted of a unit; false when it is no longer
// needed.
func (s *Scheduler) compose(u *unit, kind Kind, now time.Time) (Write, bool) {
	w := Write{Kind: kind, Key: u.key(), UID: u.UID, Version: u.Version}
	if u.queue != nil {
		w.Queue, w.Quota = u.queue.name, u.queue.Group.Path()
	}
	switch kind {
	case Dequeue:
		w.Attempt, w.Submitted = u.Attempts+1, u.Submitted
		u.shown.clear()
	case Requeue:
		u.shown.clear()
		if why := u.keptOut(); why != nil {
			w.Reason, w.Message = why.Reason, why.Message()
			s.explainer.show(u, quota.Cause{Reason: w.Reason}, now)
		}
	case Evict:
		why := u.eviction(now)
		if why == nil {
			return Write{}, false
		}
		w.Reason, w.Message = why.Reason, why.Message()
	case Explain:
		refusal := u.refusal(now)
		if refusal == nil || u.shows(refusal.Cause()) {
			return Write{}, false
		}
		w.Reason, w.Message = refusal.Reason, refusal.Message()
		s.explainer.show(u, refusal.Cause(), now)
	}
	return w, true
}

func (s *Scheduler) wakeTime() time.Time {
	at := earliest(s.timers.next(), s.explainer.next()).time()
	if s.waitIndex.Len() > 0 && (at.IsZero() || s.flushAt.Before(at)) {
		at = s.flushAt
	}
	if next := s.outbox.next(); !next.IsZero() && (at.IsZero() || next.Before(at)) {
		at = next
	}
	return at
}
