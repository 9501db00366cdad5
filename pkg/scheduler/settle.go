package scheduler

import (
	"cmp"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// settle derives the state of a unit from what is known about it: whether it is charged and whether it is queued. It
// is the only function that moves units, and it is idempotent.
func (s *Scheduler) settle(u *unit, now time.Time) {
	s.endDenial(u, instantOf(now)) // it may be queued now, and then its timer is removed
	q, refusal := s.place(u)
	refusal = cmp.Or(refusal, s.off[u.Kind])
	if u.assumed && u.write.wanted.admits() && (q == nil || refusal != nil || q != u.queue || !q.admits() || u.write.wanted != q.admission()) {
		u.unassume() // the decision is outdated and has not been sent
	}
	if u.Restored && u.Phase == Waiting && q != nil {
		u.assumed = true
	}
	u.resize()
	waiting := u.Phase == Waiting && !u.assumed
	queued := waiting && q != nil && refusal == nil && q.admits() && u.Held == nil && instantOf(now) >= u.requeueAt

	if !queued || u.queue != q || u.moved() {
		s.leave(u)
	}
	u.queue, u.placeRefusal = q, refusal
	s.hold(u)
	s.followEviction(u, now)
	s.chargeUnit(u)
	s.chargePods(now)
	if u.OverQuota {
		s.over.shown[u] = struct{}{}
	} else {
		delete(s.over.shown, u)
	}
	s.over.touch()
	s.seeScheduling(u, now)
	s.seePodless(u, now)
	if queued {
		s.enter(u, now)
	}
	s.awaitPods(u, q, now)
	s.count(u, q, u.countedPhase())

	s.watchChecks(u, now)
	if u.leaving != nil && u.mayWithdraw() && s.isSpared(u, now) {
		s.withdraw(u)
	}
	s.requestStep(u, now)
	if waiting || u.Phase == Reserved {
		u.shown.startWaiting(now)
	} else {
		u.shown.stopWaiting()
	}
	s.explainLater(u, now)
}

// settleUnitsOf settles the units of a queue, or only those of the namespace if it is not empty.
func (s *Scheduler) settleUnitsOf(q *queueState, namespace string, now time.Time) {
	units := slices.DeleteFunc(slices.Clone(q.all), func(u *unit) bool { return namespace != "" && u.namespace() != namespace })
	for _, u := range sortByKey(units) {
		s.settle(u, now)
	}
}

// requestStep requests the next write of a unit that holds quota: one that frees its quota, evicts it, or admits it
// because its admission checks are ready. A unit whose job has ended is not evicted.
func (s *Scheduler) requestStep(u *unit, now time.Time) {
	requeues := s.mayRequeue(u) || s.isForsaken(u, now) || s.mayGiveBack(u, now)
	if !requeues {
		u.write.drop(Requeue)
	}
	if !u.isExpired(now) {
		u.write.drop(Expire)
	}
	if s.eviction(u, now) == nil {
		u.write.drop(Evict)
	}
	if u.Phase == Reserved || !u.assumed {
		u.unassume() // a release requested while it was Reserved is outdated if its requeue has landed since
	}
	switch {
	case u.isExpired(now):
		s.outbox.want(u, Expire)
	case u.Restored && u.assumed:
		s.outbox.want(u, Dequeue)
	case requeues:
		s.outbox.want(u, Requeue)
	case u.leaving != nil && !s.pace(u, now) && s.eviction(u, now) == nil:
	case s.eviction(u, now) != nil:
		s.outbox.want(u, Evict)
	case s.mayRelease(u, now):
		s.outbox.want(u, Dequeue)
	case u.isMisplaced(): // it is not urgent
		s.outbox.want(u, Explain)
	}
}

// isMisplaced reports whether a unit that holds quota shows a quota other than the one it is charged to.
func (u *unit) isMisplaced() bool {
	return u.Phase.holdsQuota() && !u.unadmitted && u.queue != nil && u.Quota != "" && u.Quota != u.queue.Group.Path()
}

// mayRequeue reports whether a unit that holds quota has stopped and all its pods are gone. Some operators report a
// job as suspended before its last pods are gone.
func (s *Scheduler) mayRequeue(u *unit) bool {
	return u.Phase.holdsQuota() && u.Stopped && (u.charged == nil || !s.hasPods(u))
}

// hasPods reports whether the job still has pods that the unit is charged for. Pods that have ended may count as objects
// until someone deletes them.
func (s *Scheduler) hasPods(u *unit) bool {
	return u.holder != nil && u.holder.units[0] == u && s.pods.Busy(u.holder.Holder) > 0 && len(s.pods.Requested(u.holder.Holder)) > 0
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
	q := s.queues[group.Queue()]
	if q == nil { // the backend creates groups for units
		s.addQueues(group)
		q = s.queues[group.Queue()]
	}
	return q, nil
}

// wake records that a space may have more room. The shapes that could use it are tried together with those of other
// freed spaces.
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
	if shape == nil {
		return false
	}
	isBooked := u.queue.booking != nil && u.queue.booking.unit == u // it keeps its booking when its length changes
	return u.item.Priority != u.queue.set.MaxPriority.Of(u.Priority) || u.item.Submitted != u.Submitted || !isBooked && shape.Length != u.queue.lengthOf(u) || !shape.Demand.Equal(u.Demand)
}

func (s *Scheduler) leave(u *unit) {
	if u.item.Shape() == nil {
		return
	}
	s.dropClaim(u)
	s.remove(u)
	s.unbookUnit(u)
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
	shape := s.push(u, u.queue.Push)
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

// push adds a unit to its queue with Push or PushAlone. If the unit shows a cause, it is soon compared, because its
// shape may already be refused for another one.
func (s *Scheduler) push(u *unit, push func(*queue.Item, quota.Demand, queue.Length) *queue.Shape) *queue.Shape {
	if u.shown.last() != (quota.Cause{}) {
		s.explainer.lookAt(u.queue, s.meters.now, CorrectionDelay)
	}
	return push(&u.item, u.Demand, u.queue.lengthOf(u))
}

// refuseForGood refuses a shape that can never fit, even if it is not in front.
func (s *Scheduler) refuseForGood(q *queueState, shape *queue.Shape, now time.Time) {
	if r := q.Group.Fits(shape.Demand); r != nil && r.Final() {
		before := shape.Cause()
		q.Refuse(shape, r, now)
		s.explainer.refused(q, shape, before, now)
	}
}

// activate updates the item that the queue tries and its position in the tournament.
func (s *Scheduler) activate(q *queueState) {
	q.changed = true
	q.tried, q.attempts = nil, false
	if !q.blocks() {
		q.tried = q.Next()
	}
	if q.Policy.FrontOnly && !q.checkFront {
		q.checkFront = true
		s.frontsToCheck = append(s.frontsToCheck, q)
	}
	s.tournament.changed(q)
	s.unprove(q)
}

// evictionsOf returns the evictions of a queue, or of the units without one.
func (s *Scheduler) evictionsOf(q *queueState) *evictions {
	if q == nil {
		return &s.placeless
	}
	return &q.evictions
}

// count updates the number of units by queue and phase.
func (s *Scheduler) count(u *unit, q *queueState, phase Phase) {
	was, wasAs := u.countedIn, u.countedAs
	if was == q && wasAs == phase {
		return
	}
	isMember := q != nil || phase.holdsQuota()
	if u.memberAt > 0 && (q != was || !isMember) {
		s.evictionsOf(was).remove(u)
	}
	u.countedIn, u.countedAs = q, phase
	if u.memberAt == 0 && isMember {
		s.evictionsOf(q).add(u)
	}
	if isMember && s.evictionsOf(q).setHolds(u, phase.holdsQuota()) {
		s.watch(q)
	}
	if q != nil {
		q.counts[phase]++
		q.changed = true
	}
	if was != nil {
		was.counts[wasAs]--
		was.changed = true
		if was != q {
			s.dropIdle(was)
		}
	}
}
