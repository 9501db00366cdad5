package scheduler

import (
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// settle puts a unit into the state that follows from what is known of it: charged or not, and
// queued or not. It is the only function that moves units, and it is idempotent.
func (s *Scheduler) settle(u *unit, now time.Time) {
	l, refusal := s.place(u)
	if u.assumed && u.write.wanted.admits() && (l == nil || l != u.queue || !l.admits() || u.write.wanted != l.admission()) {
		u.unassume() // the decision is outdated and has not been sent
	}
	if u.Restored && u.Phase == Waiting && l != nil {
		u.assumed = true
	}
	u.resize()
	waiting := u.Phase == Waiting && !u.assumed
	queued := waiting && l != nil && l.admits() && u.Held == nil && instantOf(now) >= u.requeueAt

	if !queued || u.queue != l || u.moved() {
		s.leave(u)
	}
	u.queue, u.placeRefusal = l, refusal
	s.hold(u)
	s.followEviction(u, now)
	s.chargeUnit(u)
	s.chargePods()
	if u.OverQuota {
		s.over.shown[u] = struct{}{}
	} else {
		delete(s.over.shown, u)
	}
	s.over.touch()
	s.seeScheduling(u)
	s.seePodless(u, now)
	if queued {
		s.enter(u, now)
	}
	s.awaitPods(u, l, now)
	s.count(u, l, u.countedPhase())

	s.watchChecks(u, now)
	s.requestStep(u, now)
	if waiting || u.Phase == Reserved {
		u.shown.startWaiting(now)
	} else {
		u.shown.stopWaiting()
	}
	s.explainLater(u, now)
}

// settleUnitsOf is settle for the units of a queue.
func (s *Scheduler) settleUnitsOf(l *queueState, now time.Time) {
	for _, u := range sortByKey(slices.Clone(l.all)) {
		s.settle(u, now)
	}
}

// requestStep requests the write that frees the quota of the unit, that evicts it, or that admits it because
// its admission checks are ready. A unit whose job has ended is not evicted.
func (s *Scheduler) requestStep(u *unit, now time.Time) {
	requeues := s.mayRequeue(u) || s.mayGiveBack(u, now)
	if !requeues {
		u.write.drop(Requeue)
	}
	if u.Phase == Reserved {
		u.unassume()
	}
	switch {
	case u.isExpired(now):
		s.outbox.want(u, Expire)
	case u.Restored && u.assumed:
		s.outbox.want(u, Dequeue)
	case requeues:
		s.outbox.want(u, Requeue)
	case u.leaving != nil && !s.pace(u, now):
	case s.eviction(u, now) != nil:
		s.outbox.want(u, Evict)
	case s.mayRelease(u, now):
		s.outbox.want(u, Dequeue)
	}
}

// mayRequeue reports whether the job of a unit that holds quota has stopped and none of its pods is left. Some
// operators report that a job is suspended before its last pods are gone.
func (s *Scheduler) mayRequeue(u *unit) bool {
	return u.Phase.holdsQuota() && u.Stopped && (u.charged == nil || len(u.charged.Pods) == 0)
}

// place returns the queue of the unit, or a refusal that explains why it has none.
func (s *Scheduler) place(u *unit) (*queueState, *quota.Refusal) {
	if s.backend == nil {
		return nil, s.missing
	}
	group, refusal := s.backend.Place(u.namespace(), u.QuotaName)
	if refusal != nil {
		return nil, refusal
	}
	l := s.queues[group.Queue()]
	if l == nil { // the backend creates groups for units
		s.addQueues(group)
		l = s.queues[group.Queue()]
	}
	return l, nil
}

// wake records that a space may have more room. The shapes that it could hold are tried together
// with those of other freed spaces.
func (s *Scheduler) wake(space quota.Space) {
	if !s.isFreed[space] {
		s.isFreed[space] = true
		s.freed = append(s.freed, space)
	}
}

func (s *Scheduler) room(space quota.Space) int64 { return s.backend.Room(space) }

// moved reports whether the position of a queued unit has changed.
func (u *unit) moved() bool {
	shape := u.item.Shape()
	return shape != nil &&
		(u.item.Priority != u.queue.set.MaxPriority.Of(u.Priority) || u.item.Submitted != u.Submitted || !shape.Demand.Equal(u.Demand))
}

func (s *Scheduler) leave(u *unit) {
	if u.item.Shape() == nil {
		return
	}
	s.dropClaim(u)
	s.remove(u)
}

// remove removes a unit from its queue.
func (s *Scheduler) remove(u *unit) {
	shape := u.item.Shape()
	wasFirst := shape.Head() == &u.item
	u.queue.Remove(&u.item)
	if wasFirst && shape.Len() > 0 {
		s.tryFirst(u.queue, shape)
	}
	s.activate(u.queue)
	if shape.Len() == 0 {
		s.unreserve(shape)
	}
}

func (s *Scheduler) enter(u *unit, now time.Time) {
	if u.item.Shape() != nil {
		return
	}
	u.item = queue.Item{Key: u.key(), Priority: u.queue.set.MaxPriority.Of(u.Priority), Submitted: u.Submitted}
	shape := u.queue.Push(&u.item, u.Demand)
	u.Demand = shape.Demand // the demand is shared by all units of the shape
	if shape.Len() == 1 {
		s.refuseForGood(u.queue, shape, now)
	} else if shape.Head() == &u.item {
		s.tryFirst(u.queue, shape)
	}
	s.activate(u.queue)
	if len(s.victims[u.UID]) > 0 {
		s.claimants = append(s.claimants, u.key())
	}
}

// refuseForGood refuses a shape that can never fit, even if it is not in front.
func (s *Scheduler) refuseForGood(l *queueState, shape *queue.Shape, now time.Time) {
	if r := l.Group.Fits(shape.Demand); r != nil && r.Final() {
		before := shape.Cause()
		l.Refuse(shape, r, now)
		s.explainer.refused(l, shape, before, now)
	}
}

// activate updates the item that the queue tries and its position in the tournament.
func (s *Scheduler) activate(l *queueState) {
	l.changed = true
	l.tried, l.attempts = nil, false
	if !l.blocks() {
		l.tried = l.Next()
	}
	if l.Policy.FrontOnly && !l.checkFront {
		l.checkFront = true
		s.frontsToCheck = append(s.frontsToCheck, l)
	}
	s.tournament.changed(l)
	s.unprove(l)
}

// evictionsOf returns the evictions of a queue, or of the units that have none.
func (s *Scheduler) evictionsOf(l *queueState) *evictions {
	if l == nil {
		return &s.placeless
	}
	return &l.evictions
}

// count updates the number of units by queue and phase.
func (s *Scheduler) count(u *unit, l *queueState, phase Phase) {
	was, wasAs := u.countedIn, u.countedAs
	if was == l && wasAs == phase {
		return
	}
	isMember := l != nil || phase.holdsQuota()
	if u.memberAt > 0 && (l != was || !isMember) {
		s.evictionsOf(was).remove(u)
	}
	u.countedIn, u.countedAs = l, phase
	if u.memberAt == 0 && isMember {
		s.evictionsOf(l).add(u)
	}
	if isMember && s.evictionsOf(l).setHolds(u, phase.holdsQuota()) && l != nil {
		s.watch(l)
	}
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
