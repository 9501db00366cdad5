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
	l, homeless := s.place(u)
	if u.wanted == Dequeue && (l == nil || l != u.line) {
		u.unassume() // it was decided on other grounds, and has not been sent
	}
	charged := u.assumed || u.Phase.holdsQuota()
	waiting := u.Phase == Waiting && !u.assumed
	inLine := waiting && l != nil && u.Held == nil && !now.Before(u.RequeueAt)

	if !inLine || u.line != l || s.moved(u) {
		s.leave(u)
	}
	if !charged || l == nil || u.group != l.Group || !u.demand.Equal(u.Demand) {
		s.uncharge(u)
	}
	u.line, u.homeless = l, homeless
	if charged && l != nil {
		s.charge(u)
	}
	if inLine {
		s.enter(u, now)
	}
	s.count(u, l, u.countedPhase())

	s.takeBack(u, now)
	switch {
	case !waiting:
		u.since = time.Time{}
	case u.since.IsZero():
		u.since = now
	}
	s.tellLater(u, now)
}

// takeBack asks for the write with which the unit gives its quota back, or is told
// to. An end that came first leaves nothing to give back.
func (s *Scheduler) takeBack(u *unit, now time.Time) {
	stopped := u.Phase.holdsQuota() && u.Stopped
	if !stopped {
		u.drop(Requeue)
	}
	switch {
	case stopped:
		s.want(u, Requeue)
	case s.eviction(u, now) != nil:
		s.want(u, Evict)
	}
}

// place finds the unit's line, or says why it has none.
func (s *Scheduler) place(u *unit) (*line, *quota.Refusal) {
	if s.backend == nil {
		return nil, s.missing
	}
	group, refusal := s.backend.Place(u.Namespace, u.QuotaName)
	if refusal != nil {
		return nil, refusal
	}
	l := s.lines[group.Queue()]
	if l == nil { // a backend whose groups come as units do
		s.addLine(group)
		l = s.lines[group.Queue()]
	}
	return l, nil
}

func (u *unit) countedPhase() Phase {
	if u.assumed {
		return Dequeued
	}
	return u.Phase
}

func (u *unit) unassume() {
	u.assumed = false
	u.drop(Dequeue)
}

func (s *Scheduler) charge(u *unit) {
	if u.group != nil {
		return
	}
	u.group, u.demand = u.line.Group, u.Demand
	u.group.Charge(u.demand)
}

// uncharge gives back what the unit was charged with, and wakes the shapes that
// the freed room could hold.
func (s *Scheduler) uncharge(u *unit) {
	if u.group == nil {
		return
	}
	group, demand := u.group, u.demand
	u.group, u.demand = nil, quota.Demand{}
	group.Release(demand)
	for _, node := range group.Nodes() {
		for _, amount := range demand.Requests {
			s.lot.Wake(node, amount.ID, s.backend.Room(node, amount.ID), func(q *queue.Queue) {
				s.activate(s.lines[q.Group.Queue()])
			})
		}
	}
}

// moved tells whether a unit in line stands at another place by now.
func (s *Scheduler) moved(u *unit) bool {
	shape := u.item.Shape()
	return shape != nil &&
		(u.item.Priority != u.Priority || u.item.Submitted != u.Submitted || !shape.Demand.Equal(u.Demand))
}

func (s *Scheduler) leave(u *unit) {
	if u.item.Shape() == nil {
		return
	}
	u.line.Remove(&u.item)
	s.activate(u.line)
}

func (s *Scheduler) enter(u *unit, now time.Time) {
	if u.item.Shape() != nil {
		return
	}
	u.item = queue.Item{Key: u.Key, Priority: u.Priority, Submitted: u.Submitted}
	shape := u.line.Push(&u.item, u.Demand)
	if shape.Len() == 1 {
		// What can never fit is said at once, whoever is in front.
		if r := u.line.Group.Fits(u.Demand); r != nil && r.Final() {
			u.line.Refuse(shape, r, now)
		}
	}
	s.activate(u.line)
}

// activate puts the line where what it has to try belongs now.
func (s *Scheduler) activate(l *line) {
	l.changed = true
	l.tried, l.late = l.Next()
	if l.tried == nil {
		s.active.Remove(l)
	} else {
		s.active.Set(l)
	}
}

// count keeps the numbers of units by line and phase.
func (s *Scheduler) count(u *unit, l *line, phase Phase) {
	is := countedAs{line: l, phase: phase}
	if is == u.counts {
		return
	}
	if was := u.counts; was.line != nil && was.phase != Ended {
		was.line.counts[was.phase]--
		was.line.changed = true
	}
	if l != nil && phase != Ended {
		l.counts[phase]++
		l.changed = true
	}
	u.counts = is
}

// want asks for a write; a later wish replaces an earlier one.
func (s *Scheduler) want(u *unit, kind Kind) {
	if u.sent != 0 && u.sentKind == kind && kind != Explain {
		return
	}
	u.wanted = kind
	s.post(u)
}

func (u *unit) drop(kind Kind) {
	if u.wanted == kind {
		u.wanted = 0
	}
}

// post puts a unit in the outbox when a write is wanted and none is under way.
func (s *Scheduler) post(u *unit) {
	if u.wanted != 0 && u.sent == 0 && !u.posted {
		u.posted = true
		s.outbox = append(s.outbox, u)
	}
}
