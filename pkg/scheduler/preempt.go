package scheduler

import (
	"fmt"
	"math"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/preemption"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// mayMakeRoom reports whether the refused item that the queue tries can make room by evictions. It then competes with
// items that fit, so that they do not take the room that it would get.
func (s *Scheduler) mayMakeRoom(q *queueState, refusal *quota.Refusal, now time.Time) bool {
	evicts := s.reclaims || q.set.Preemption.WithinQueue || q.failing > 0
	if s.planner == nil || !evicts || refusal.Final() {
		return false
	}
	u := s.units[q.tried.Key]
	if c := u.claim; c != nil && (c.made || c.retryAt != 0 || c.changes == s.changes || instantOf(now) < c.notBefore) {
		return false
	}
	if !s.mayReclaim(q, u) && !s.mayPreempt(q, u) {
		s.dropFailure(u) // it is scheduled again when there are units to evict
		return false
	}
	if !q.mayFail(now) {
		s.fail(u, q.failuresSince.plus(claimRetry), now)
		return false
	}
	return true
}

// tryFirst tries a refused shape again if its new first unit can evict others, or may pass a booking. The previous
// first unit may have had a lower priority, or have taken its attempts with it.
func (s *Scheduler) tryFirst(q *queueState, shape *queue.Shape) {
	if s.planner == nil || !shape.Parked() {
		return
	}
	if s.delayed[shape] { // the booking may not bind the new first unit
		q.Retry(shape)
		return
	}
	u := s.units[shape.Head().Key]
	if c := u.claim; c != nil && (c.made || c.isScheduled()) {
		return
	}
	if s.mayReclaim(q, u) || s.mayPreempt(q, u) {
		q.Retry(shape)
	}
}

// mayFail reports whether another attempt of the queue may fail now.
func (q *queueState) mayFail(now time.Time) bool {
	return q.failures < failuresPerRetry || q.failuresSince.plus(claimRetry) <= instantOf(now)
}

// failed counts a failed attempt.
func (q *queueState) failed(now time.Time) {
	if q.failuresSince.plus(claimRetry) <= instantOf(now) {
		q.failures, q.failuresSince = 0, instantOf(now)
	}
	q.failures++
}

// mayReclaim reports whether the unit is within the guarantee of its group, so that borrowers can be evicted for it.
func (s *Scheduler) mayReclaim(q *queueState, u *unit) bool {
	return s.reclaims && q.Group.Owed(u.Demand, quota.Branch{Node: q.Group.Nodes()[0]})
}

// mayPreempt reports whether the queue allows preemption and a unit with lower priority holds its quota.
func (s *Scheduler) mayPreempt(q *queueState, u *unit) bool {
	return q.set.Preemption.WithinQueue && slices.ContainsFunc(q.holders(), func(h *unit) bool {
		return q.priorityOf(h) < u.item.Priority
	})
}

// priorityOf returns the priority of a unit as limited by the queue.
func (q *queueState) priorityOf(u *unit) int32 { return q.set.MaxPriority.Of(u.Priority) }

// makeRoom evicts units to make room for the item that the queue tries, and keeps the room for it. If that is
// impossible, it refuses the item.
func (s *Scheduler) makeRoom(q *queueState, u *unit, refusal *quota.Refusal, now time.Time) {
	q.attempts = false
	due := preemption.Claim{Group: q.Group, Demand: u.Demand, Reclaims: s.reclaims && !s.countsOnUnsent(q, u)}
	if q.set.Preemption.WithinQueue {
		due.Preempts = func(c *preemption.Candidate) bool { return c.Priority < u.item.Priority }
	}
	patientUntil := u.patientUntil(now)
	var victims []preemption.Victim
	fits, isOwed, later := false, false, instant(0)
	s.exempt(q, &u.item, func() {
		isOwed = s.reclaims && s.isOwedAsPlanned(q, u)
		s.planner.AsPlanned(func() {
			if fits = q.Group.Fits(u.Demand) == nil; !fits {
				var candidates []*preemption.Candidate
				candidates, later = s.candidates(q, u, patientUntil, now)
				victims = preemption.Choose(s.planner, due, candidates)
			}
		})
	})
	protectedUntil := s.protectedUntil(victims)
	isTooEarly := protectedUntil > instantOf(now)
	if isTooEarly {
		later = protectedUntil
	}
	if !fits && (len(victims) == 0 || isTooEarly) {
		q.failed(now)
		s.fail(u, later, now)
		if isTooEarly && u.claim != nil {
			u.claim.patientUntil = patientUntil
		}
		s.refuse(q, u.item.Shape(), refusal, now)
		return
	}
	s.keepRoom(u, s.isOwed(u) || fits && isOwed || slices.ContainsFunc(victims, func(v preemption.Victim) bool { return v.Reclaimed }), now)
	for _, v := range victims {
		victim := s.units[v.Key]
		s.evictFor(victim, u, whyEvicted(victim, u, v.Reclaimed), now)
	}
	if slices.ContainsFunc(q.claimed, func(c *claim) bool { return q.Before(&u.item, &c.unit.item) }) {
		s.checkClaimsOf(q, now) // it may use what is kept for units behind it
	}
}

// countsOnUnsent reports whether the unit is within the guarantee of its group only if units of its queue are evicted for
// others, and these evictions are not sent yet. An eviction that was sent for it could not be withdrawn with them.
func (s *Scheduler) countsOnUnsent(q *queueState, u *unit) bool {
	if q.set.Preemption.MaxPerMinute <= 0 {
		return false // they are sent together
	}
	var unsent []*charge
	for _, h := range q.holders() {
		if v := h.leaving; v != nil && v.planned != nil && v.why != nil && !v.mayGo && !q.isBehind(h, u) {
			unsent = append(unsent, v.planned)
			s.planner.Plan(v.planned.group, &v.planned.Charge)
		}
	}
	if len(unsent) == 0 {
		return false
	}
	owed := s.isOwedWithoutBorrowers(q, u)
	for _, c := range unsent {
		s.planner.PlanUncharge(c.group, &c.Charge)
	}
	return !owed
}

// patientUntil returns when the unit stops waiting for victims that have not run for their MinRunTime yet.
func (u *unit) patientUntil(now time.Time) instant {
	if u.claim != nil && u.claim.patientUntil != 0 {
		return u.claim.patientUntil
	}
	return instantOf(now).plus(maxPatience)
}

// protectedUntil returns when the last of the victims has run for its MinRunTime; 0 if there are none.
func (s *Scheduler) protectedUntil(victims []preemption.Victim) (until instant) {
	for _, v := range victims {
		until = max(until, s.units[v.Key].protectedUntil(s))
	}
	return until
}

// protectedUntil returns when the unit has run for its MinRunTime. Growth counts from the admission of its job.
// Otherwise, the job would be evicted instead, together with its growth.
func (u *unit) protectedUntil(s *Scheduler) instant {
	if u.Phase == Reserved {
		return 0 // it does not run
	}
	since := u.dequeuedAt
	if u.Growth && u.holder != nil {
		since = min(since, u.holder.units[0].dequeuedAt)
	}
	if u.countedIn == nil {
		return since.plus(s.minRunTime)
	}
	return since.plus(s.minRunTimeOf(u.countedIn))
}

// candidates returns the units that can be evicted for u in the plan. It omits units that will not have run for their
// MinRunTime by patientUntil, or by now if that is later. later is when more units can be evicted; 0 if never.
func (s *Scheduler) candidates(q *queueState, u *unit, patientUntil instant, now time.Time) (found []*preemption.Candidate, later instant) {
	lacking := s.lacking(q, u.Demand)
	reclaimable := func(from quota.Group) bool {
		return s.reclaims && s.planner.Reclaims(from) && s.hasBorrowed(from, lacking)
	}
	add := func(h *unit, priority int32) {
		if !s.mayBeEvicted(h) {
			return
		}
		if at := h.protectedUntil(s); at > max(patientUntil, instantOf(now)) {
			later = earliest(later, at)
			return
		}
		found = append(found, &preemption.Candidate{Key: h.key(), Priority: priority, Started: h.started(),
			Exceeding: h.Growth || s.exceeds(h), Group: h.charged.group, Charge: &h.charged.Charge})
	}
	for _, from := range s.order {
		switch {
		case from.holding == 0:
			continue
		case from == q && !s.mayPreempt(q, u), from != q && !reclaimable(from.Group):
			continue
		}
		if at := from.mayEvictAt(now); at > instantOf(now) {
			later = earliest(later, at)
			continue
		}
		found = slices.Grow(found, from.holding)
		for _, h := range from.holders() {
			if from != q || q.priorityOf(h) < u.item.Priority {
				add(h, from.priorityOf(h))
			}
		}
	}
	for _, h := range s.placeless.holders() { // a unit of this quota is neither in the queue nor in another quota
		if h.charged != nil && h.charged.group.Path() != q.Group.Path() && reclaimable(h.charged.group) {
			add(h, h.Priority)
		}
	}
	return found, later
}

// lacking returns the resources of the demand that lack room at any node of the group.
func (s *Scheduler) lacking(q *queueState, d quota.Demand) (lacking []resources.ID) {
	for _, a := range d.Requests {
		if slices.ContainsFunc(q.Group.Nodes(), func(n quota.NodeID) bool {
			return a.Value > s.room(quota.Space{Node: n, Resource: a.ID})
		}) {
			lacking = append(lacking, a.ID)
		}
	}
	return lacking
}

// hasBorrowed reports whether the group uses more than its guarantee of at least one of the resources.
func (s *Scheduler) hasBorrowed(g quota.Group, of []resources.ID) bool {
	return slices.ContainsFunc(of, func(r resources.ID) bool {
		room := s.room(quota.Space{Node: g.Nodes()[0], Resource: r, Bound: quota.OwnMin})
		return room < 0 || room == math.MaxInt64
	})
}

// started returns when the unit was admitted, in microseconds. A Reserved unit counts as the latest, because its
// eviction loses no work.
func (u *unit) started() int64 {
	if u.Phase == Reserved {
		return math.MaxInt64
	}
	return int64(u.dequeuedAt)
}

func (s *Scheduler) minRunTimeOf(q *queueState) time.Duration {
	if period := q.set.Preemption.MinRunTime; period.Set {
		return period.Value
	}
	return s.minRunTime
}

// mayBeEvicted reports whether the unit may be evicted for another one.
func (s *Scheduler) mayBeEvicted(u *unit) bool {
	return u.charged != nil && u.Phase.holdsQuota() && !u.assumed && u.leaving == nil && !u.Evicted && !u.Stopped && !u.Over &&
		!u.Unstoppable && u.write.sent != Dequeue && s.outbox.denied[u] == 0 && (u.Demand.Preemptible || s.exceeds(u))
}

// isSpared reports whether the unit can no longer be evicted for another one as decided, because the unit or the
// settings of its queue have changed, or because the API server denies it.
func (s *Scheduler) isSpared(u *unit, now time.Time) bool {
	isPreempted, claimant := u.leaving.why.Reason == wellknown.ReasonPreempted, s.units[u.leaving.forKey]
	return isPreempted && (u.queue == nil || !u.queue.set.Preemption.WithinQueue || claimant != nil && u.queue.priorityOf(u) >= u.queue.priorityOf(claimant)) ||
		u.protectedUntil(s) > instantOf(now) || s.outbox.denied[u] != 0 ||
		u.Unstoppable || !u.Demand.Preemptible && (u.charged == nil || !s.exceeds(u))
}

// isEasierToEvictAs reports whether the newer version of the unit holds quota and can be evicted for more units than
// before.
func (u *unit) isEasierToEvictAs(seen *Unit) bool {
	return seen.Phase.holdsQuota() && !seen.Partial && (seen.Priority < u.Priority || seen.Demand.Preemptible && !u.Demand.Preemptible ||
		!seen.Unstoppable && u.Unstoppable)
}

// exceeds reports whether the pods of the unit request more than was admitted. Pods that are being deleted do not
// count, because their replacements may already exist.
func (s *Scheduler) exceeds(u *unit) bool {
	if u.charged.Total().Equal(u.Demand.Requests) || u.holder == nil || u.holder.units[0] != u {
		return false
	}
	lasting := u.holder.beyondGrowth(s.pods.Lasting(u.holder.Holder))
	return !u.Demand.Requests.Max(lasting).Equal(u.Demand.Requests)
}

// whyEvicted explains to the victim why it is evicted. It names the claimant only if both are in the same namespace.
func whyEvicted(victim, claimant *unit, reclaimed bool) *quota.Refusal {
	who := "a job"
	if claimant.namespace() == victim.namespace() {
		who = "the job of unit " + claimant.key()
	}
	what := "this job is stopped and queued again"
	if victim.Growth { // the job keeps running
		what = "the pods that this job added are queued again"
	}
	if reclaimed {
		return &quota.Refusal{Reason: wellknown.ReasonReclaimed, Sentence: fmt.Sprintf(
			"quota %s has borrowed what is guaranteed to another quota, and %s there needs it now; %s",
			victim.charged.group.Path(), who, what)}
	}
	return &quota.Refusal{Reason: wellknown.ReasonPreempted, Sentence: fmt.Sprintf(
		"%s with higher priority in queue %s gets the quota; %s", who, victim.queue.name, what)}
}
