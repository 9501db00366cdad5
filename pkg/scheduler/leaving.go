package scheduler

import (
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// leaving is the eviction of a unit, from the decision until the unit no longer holds quota.
type leaving struct {
	// why is the reason. If the unit is evicted for another one, forUID and forKey are the UID and the key of that
	// claimant. If another process has decided the eviction, why is nil and forKey is empty.
	why            *quota.Refusal
	forUID, forKey string
	// served is whether the claimant has started since. listedFor is the UID of the claimant that lists this unit
	// among its victims; empty if none does.
	served    bool
	listedFor string
	// mayGo is whether the eviction can be sent. It then counts toward the pace of its queue.
	mayGo bool
	// at is when the eviction was sent; 0 if it was not. late is whether it has taken too long since.
	at   instant
	late bool
	// checkAt is when the eviction can be sent, or when it is late; 0 if neither is due.
	checkAt instant
	// stopping is whether pods of the job are being deleted, and stoppedAt is when the last of them was gone; 0 if none
	// was. Both are only for growth.
	stopping  bool
	stoppedAt instant
	// planned is the charge that the plan no longer includes; nil if there is none.
	planned *charge
}

// evictions are the units of a queue, and the state of evictions within it.
type evictions struct {
	members
	// claimed are the claims of the units in the queue.
	claimed []*claim
	// sent are the times of the last evictions for others, in order.
	sent []instant
	// failures is the number of attempts to make room that failed since failuresSince.
	failures      int
	failuresSince instant
	// failing is the number of units whose failed attempts are repeated. heldMore is whether the queue is in
	// claims.heldMore.
	failing  int
	heldMore bool
}

// seeEviction applies the eviction that a unit shows.
func (u *unit) seeEviction(seen *Unit) {
	if !seen.Evicted || u.leaving != nil && u.leaving.forUID == seen.Eviction.For {
		return
	}
	if u.leaving == nil {
		u.leaving = &leaving{}
	}
	if seen.Eviction.For != "" {
		u.leaving.forUID, u.leaving.served = seen.Eviction.For, false
	}
	if !seen.Eviction.At.IsZero() {
		u.leaving.at = instantOf(seen.Eviction.At)
	}
}

// forgetPlans forgets what is planned, because the backend is replaced.
func (u *unit) forgetPlans() {
	if u.leaving != nil {
		u.leaving.planned = nil
	}
}

// followEviction updates what is known about the eviction of a unit.
func (s *Scheduler) followEviction(u *unit, now time.Time) {
	going := u.Phase.holdsQuota() && !u.Over
	v := u.leaving
	switch {
	case !going || v != nil && v.why == nil && !u.Evicted && !u.Stopped:
		s.stopFollowing(u)
		return
	case v == nil && !u.Evicted && !u.Stopped:
		return
	case v == nil:
		u.leaving = &leaving{}
		v = u.leaving
	}
	if (u.Evicted || u.Stopped) && v.at == 0 {
		v.at = instantOf(now)
		s.retryClaimant(v)
	}
	if u.Evicted && v.forUID != "" && !v.mayGo && u.queue != nil { // an earlier process has sent the eviction
		u.queue.evicted(v.at)
		v.mayGo = true
	}
	if s.listVictim(u) {
		s.seekClaimants = true
	}
	v.checkAt = 0
	if v.at != 0 && !v.late && s.backend != nil { // without quota, nothing is charged, so nothing shows that it is stopping
		deadline := v.at.plus(s.timeout)
		if u.holder != nil { // the end of its pods is reported before the unit shows that the job has stopped
			s.seeStopping(u, now)
			deadline = max(deadline, min(max(u.holder.podsGoneAt, v.stoppedAt).plus(s.timeout), v.at.plus(MaxStopping)))
		}
		switch {
		case deadline > instantOf(now):
			v.checkAt = deadline
		case s.isStopping(u) && instantOf(now) < v.at.plus(MaxStopping):
			v.checkAt = min(instantOf(now).plus(s.timeout), v.at.plus(MaxStopping))
		default:
			v.late = true
			s.claimsStale = true
			s.changes++
		}
	}
	s.planUncharge(u)
}

// isStopping reports whether all remaining pods of the unit are being deleted. They count until their grace periods
// end. For growth, any pod of the job counts, because it is unknown which pods belong to which unit.
func (s *Scheduler) isStopping(u *unit) bool {
	switch {
	case u.charged == nil || u.holder == nil:
		return false
	case u.Growth:
		return len(s.pods.Requested(u.holder.Holder).Minus(s.pods.Lasting(u.holder.Holder))) > 0
	}
	return s.hasPods(u) && len(s.pods.Lasting(u.holder.Holder)) == 0
}

// seeStopping records when the last deleted pod of growth is gone, because the job keeps its other pods.
func (s *Scheduler) seeStopping(u *unit, now time.Time) {
	v := u.leaving
	if v == nil || !u.Growth {
		return
	}
	stopping := s.isStopping(u)
	if v.stopping && !stopping {
		v.stoppedAt = instantOf(now)
	}
	v.stopping = stopping
}

// stopFollowing forgets the eviction of a unit, because it is over or was withdrawn.
func (s *Scheduler) stopFollowing(u *unit) {
	if u.leaving == nil {
		return
	}
	v := u.leaving
	released := v.planned
	s.disown(u)
	s.unplanUncharge(u)
	u.leaving = nil
	if released != nil { // a claim may have relied on it
		s.reviewClaims(released)
	}
	s.retryClaimant(v)
}

// retryClaimant retries the claimant of an eviction, because it does not start while it relies on unsent evictions.
func (s *Scheduler) retryClaimant(v *leaving) {
	u := s.units[v.forKey]
	if u == nil || u.UID != v.forUID || u.claim == nil || !u.claim.made {
		return
	}
	if shape := u.item.Shape(); shape.Parked() {
		u.queue.Retry(shape)
		s.activate(u.queue)
	}
}

// listVictim adds the unit to the victims of its claimant. It removes the unit from those of an earlier claimant,
// because another process can change who the unit is evicted for. It reports whether it added the unit.
func (c *claims) listVictim(u *unit) bool {
	v := u.leaving
	if v.served || v.listedFor == v.forUID {
		return false
	}
	c.disown(u)
	v.listedFor = v.forUID
	c.victims[v.forUID] = append(c.victims[v.forUID], u)
	return true
}

// disown removes the unit from the victims of its claimant.
func (c *claims) disown(u *unit) {
	uid := u.leaving.listedFor
	if uid == "" {
		return
	}
	u.leaving.listedFor = ""
	left := slices.DeleteFunc(c.victims[uid], func(other *unit) bool { return other == u })
	if len(left) == 0 {
		delete(c.victims, uid)
	} else {
		c.victims[uid] = left
	}
}

// serve records that the claimant of an evicted unit has started. If the claimant is queued again, the room of this
// victim is not kept for it.
func (c *claims) serve(v *unit) {
	c.disown(v)
	v.leaving.served = true
}

// planUncharge plans that the charge of the unit will be freed, unless the eviction takes too long.
func (s *Scheduler) planUncharge(u *unit) {
	v := u.leaving
	wanted := u.charged
	if v.late || s.planner == nil {
		wanted = nil
	}
	if v.planned == wanted {
		return
	}
	s.unplanUncharge(u)
	if wanted != nil {
		v.planned = wanted
		s.planner.PlanUncharge(wanted.group, &wanted.Charge)
		s.wakeKept(wanted.group, &wanted.Charge)
	}
}

func (s *Scheduler) unplanUncharge(u *unit) {
	if v := u.leaving; v.planned != nil {
		s.planner.Plan(v.planned.group, &v.planned.Charge)
		v.planned = nil
		s.changes++
	}
}

// withdraw withdraws the eviction of a unit for another one if it was not sent. It reports whether it did.
func (s *Scheduler) withdraw(v *unit) bool {
	if !v.mayWithdraw() {
		return false
	}
	v.write.drop(Evict)
	s.stopFollowing(v)
	s.requestStep(v, s.meters.now) // it may have to be evicted for another reason, too
	s.schedule(v, s.meters.now)
	return true
}

// withdrawOutdated withdraws the eviction of a unit whose claimant no longer has a claim, in case it could not be
// withdrawn when the claim ended.
func (s *Scheduler) withdrawOutdated(v *unit) {
	if v.leaving != nil && v.mayWithdraw() && !s.isClaimed(v) {
		s.withdraw(v)
	}
}

// withdrawOrphans is withdrawOutdated for all victims, after a claim has ended that may have relied on evictions for others.
func (s *Scheduler) withdrawOrphans() {
	var orphans []*unit
	for _, victims := range s.victims {
		for _, v := range victims {
			if v.mayWithdraw() && !s.isClaimed(v) {
				orphans = append(orphans, v)
			}
		}
	}
	for _, v := range sortByKey(orphans) {
		s.withdraw(v)
	}
}

// isClaimed reports whether the unit that the eviction was decided for has a claim.
func (s *Scheduler) isClaimed(v *unit) bool {
	u := s.units[v.leaving.forKey]
	return u != nil && u.UID == v.leaving.forUID && u.claim != nil && u.claim.made
}

// mayWithdraw reports whether the eviction was decided for another unit and has not been sent.
func (u *unit) mayWithdraw() bool {
	return u.leaving.why != nil && !u.Evicted && u.write.sent != Evict && !u.Stopped
}
