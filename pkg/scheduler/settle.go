package scheduler

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// settle brings a unit to where it belongs by what is known of it now: charged
// or not, in line or not. It is the only place that moves units, and doing it
// twice is the same as doing it once.
func (s *Scheduler) settle(u *unit, now time.Time) {
	l, refusal := s.place(u)
	if u.write.wanted == Dequeue && (l == nil || l != u.queue || l.set.Stop != NotStopped) {
		u.unassume() // it was decided on other grounds, and has not been sent
	}
	charged := u.assumed || u.Phase.holdsQuota()
	waiting := u.Phase == Waiting && !u.assumed
	inLine := waiting && l != nil && l.set.Stop == NotStopped && u.Held == nil && instantOf(now) >= u.requeueAt
	var holder quota.Group
	if charged {
		holder = s.holder(u, l)
	}

	if !inLine || u.queue != l || u.moved() {
		s.leave(u)
	}
	if c := u.charged; c != nil && (c.group != holder || c.owner != u.Owner || !c.demand.Equal(u.Demand)) {
		s.uncharge(u)
	}
	u.queue, u.placeRefusal = l, refusal
	if holder != nil {
		s.charge(u, holder)
	}
	if inLine {
		s.enter(u, now)
	}
	s.count(u, l, u.countedPhase())

	s.requestEviction(u, now)
	if waiting {
		u.shown.startWaiting(now)
	} else {
		u.shown.stopWaiting()
	}
	s.explainLater(u, now)
}

// requestEviction asks for the write with which the unit gives its quota back, or is reported
// to. An end that came first leaves nothing to give back.
func (s *Scheduler) requestEviction(u *unit, now time.Time) {
	stopped := u.Phase.holdsQuota() && u.Stopped
	if !stopped {
		u.write.drop(Requeue)
	}
	switch {
	case stopped:
		s.outbox.want(u, Requeue)
	case u.eviction(now) != nil:
		s.outbox.want(u, Evict)
	}
}

// place finds the unit's line, or says why it has none.
func (s *Scheduler) place(u *unit) (*queueState, *quota.Refusal) {
	if s.backend == nil {
		return nil, s.missing
	}
	group, refusal := s.backend.Place(u.namespace(), u.QuotaName)
	if refusal != nil {
		return nil, refusal
	}
	l := s.queues[group.Queue()]
	if l == nil { // a backend whose groups come as units do
		s.addLines(group)
		l = s.queues[group.Queue()]
	}
	return l, nil
}

// holder is the group that a unit which holds quota is charged to. One that belongs
// to no group any more still uses what the nodes above have: it counts at what is
// left of the group that it was released by.
func (s *Scheduler) holder(u *unit, l *queueState) quota.Group {
	switch {
	case l != nil:
		return l.Group
	case s.backend != nil:
		return s.backend.Nearest(u.Quota)
	default:
		return nil
	}
}

func (s *Scheduler) charge(u *unit, group quota.Group) {
	if u.charged != nil {
		return
	}
	u.charged = &charge{group: group, owner: u.Owner, demand: u.Demand}
	group.Charge(u.Owner, u.Demand)
	s.tournament.used(group)
	s.tournament.shrunk(group, u.Demand, s.unprove)
	s.reviseClaims(group)
}

// uncharge gives back what the unit was charged with, and wakes the shapes that
// the freed room could hold.
func (s *Scheduler) uncharge(u *unit) {
	if u.charged == nil {
		return
	}
	was := u.charged
	u.charged = nil
	was.group.Release(was.owner, was.demand)
	s.tournament.used(was.group)
	was.group.Spaces(was.demand, s.wake)
}

// wake takes in that there may be more room in a space. What it could hold is tried with
// all else that was freed meanwhile.
func (s *Scheduler) wake(space quota.Space) {
	if !s.isFreed[space] {
		s.isFreed[space] = true
		s.freed = append(s.freed, space)
	}
}

func (s *Scheduler) room(space quota.Space) int64 { return s.backend.Room(space) }

// moved reports whether a unit in line stands at another place by now.
func (u *unit) moved() bool {
	shape := u.item.Shape()
	return shape != nil &&
		(u.item.Priority != u.queue.set.MaxPriority.Of(u.Priority) || u.item.Submitted != u.Submitted || !shape.Demand.Equal(u.Demand))
}

func (s *Scheduler) leave(u *unit) {
	if u.item.Shape() == nil {
		return
	}
	shape := u.item.Shape()
	u.queue.Remove(&u.item)
	s.activate(u.queue)
	if shape.Len() == 0 {
		s.unclaim(u.queue, shape)
	}
}

func (s *Scheduler) enter(u *unit, now time.Time) {
	if u.item.Shape() != nil {
		return
	}
	u.item = queue.Item{Key: u.key(), Priority: u.queue.set.MaxPriority.Of(u.Priority), Submitted: u.Submitted}
	shape := u.queue.Push(&u.item, u.Demand)
	u.Demand = shape.Demand // one of it is enough
	if shape.Len() == 1 {
		s.refuseForGood(u.queue, shape, now)
	}
	s.activate(u.queue)
}

// refuseForGood refuses a shape that can never fit at once, whoever is in front.
func (s *Scheduler) refuseForGood(l *queueState, shape *queue.Shape, now time.Time) {
	if r := l.Group.Fits(shape.Demand); r != nil && r.Final() {
		l.Refuse(shape, r, now)
		s.explainer.refused(l, shape, now)
	}
}

// activate puts the line where what it has to try belongs now.
func (s *Scheduler) activate(l *queueState) {
	l.changed = true
	l.tried = l.Next()
	if l.Policy == queue.Block && !l.checkFront {
		l.checkFront = true
		s.frontsToCheck = append(s.frontsToCheck, l)
	}
	s.tournament.changed(l)
	s.unprove(l)
}

// count keeps the numbers of units by line and phase.
func (s *Scheduler) count(u *unit, l *queueState, phase Phase) {
	was, wasAs := u.countedIn, u.countedAs
	if was == l && (wasAs == phase || l == nil) {
		return
	}
	u.countedIn, u.countedAs = l, phase
	if l != nil {
		l.counts[phase]++
		l.changed = true
	}
	if was != nil {
		was.counts[wasAs]--
		was.changed = true
		if was != l {
			s.dropIdle(was)
		}
	}
}
