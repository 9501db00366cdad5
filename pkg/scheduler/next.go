package scheduler

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// FlushInterval is how often parked shapes are tried even if nothing was freed. This is a safety net: a shape that then
// fits has missed a wake-up, and Rescued counts it.
const FlushInterval = 5 * time.Minute

// Next makes all decisions that are possible now. It returns the resulting writes, and when to call it again if no
// event comes earlier; zero means never.
func (s *Scheduler) Next(now time.Time) (Plan, time.Time) {
	s.meters.now = now
	s.waitIndex.Begin(now)
	clear(s.growing)
	s.growing = s.growing[:0]
	s.reorder(now)
	// A unit must be tried before the reason for its wait is known, and expired timers can add units to try. So this
	// repeats until nothing changes.
	for again := true; again; {
		s.retryClaims(now)
		s.admit(now)
		again = s.watchFronts(now)
		again = s.retryClaims(now) || again
		again = s.runTimers(now) || again
		again = s.flush(now) || again
	}
	if s.waitIndex.Len() > 0 && s.flushAt == 0 {
		s.flushAt = instantOf(now).plus(s.flushInterval)
	}
	s.watchLimits(now)
	s.watchScheduling(now)
	plan := s.outbox.plan(now, s.compose)
	return plan, s.wakeTime()
}

// admit admits waiting units until no unit is worth trying.
func (s *Scheduler) admit(now time.Time) {
	if s.tournament == nil {
		return
	}
	for _, q := range s.tournament.competing() {
		q.Begin(now)
		s.activate(q)
	}
	for {
		for s.hasMore() {
			s.restoreClaims(now)
			s.book(now)
			s.wakeFreed(now) // a refusal can end a reservation, which allows borrowing again
			s.prove(now)
			s.unproveGrown()
			s.checkClaims(now)
		}
		s.growNewest()
		if s.hasMore() {
			continue
		}
		q := s.tournament.next()
		if q == nil {
			if s.growAll() {
				continue
			}
			return
		}
		u := s.units[q.tried.Key]
		if s.made > 0 || q.attempts || len(s.bookings) > 0 || s.ledger != nil && len(s.ledger.holders) > 0 {
			switch refusal := s.fits(q, q.tried.Shape()); {
			case refusal == nil:
			case q.attempts && !s.isDelay(refusal):
				s.makeRoom(q, u, refusal, now)
				continue
			default:
				s.unprove(q) // after other admissions, it would borrow what is reserved
				continue
			}
		}
		claim, binding := u.claim, s.binding(q, u, u.Demand)
		s.endClaim(u)
		s.take(q, u)
		u.assumed = true
		s.admitLeast(u, claim)
		s.hold(u)
		s.chargeUnit(u)
		for _, b := range binding {
			b.passed(u, s.changes, now)
		}
		s.eachVictim(u, func(v *unit) {
			if !s.withdraw(v) {
				s.serve(v)
			}
		})
		s.reviewClaims(u.charged)
		if claim != nil && claim.made {
			s.withdrawOrphans()
		}
		s.outbox.want(u, q.admission())
		s.awaitPods(u, q, now)
		s.count(u, q, u.countedPhase())
		if s.claimsStale { // it has used what is kept for units behind it
			s.checkClaimsOf(q, now)
		}
		u.shown.stopWaiting()
		s.timers.set(u, 0)
	}
}

// hasMore reports whether changes must be processed before the next unit is admitted.
func (s *Scheduler) hasMore() bool {
	return len(s.freed) > 0 || len(s.unproven) > 0 || s.grown() || s.claimsStale || s.seekClaimants || len(s.claimants) > 0 || s.hasStaleBookings()
}

// wakeFreed activates the queues that may have something to try in the freed spaces. If a queue only tries its front, or
// nothing until pods are ready, its other units may still show that they lack what is free now.
func (s *Scheduler) wakeFreed(now time.Time) {
	for _, space := range s.freed {
		s.waitIndex.Wake(space, func(woken *queue.Queue) {
			q := s.queues[woken.Group.Queue()]
			s.activate(q)
			if q.Policy.FrontOnly || q.blocks() {
				s.explainer.lookAt(q, now, CorrectionDelay)
			}
		})
	}
	s.freed = s.freed[:0]
	clear(s.isFreed)
}

// prove refuses items until each queue tries an item that fits. Otherwise, an item that does not fit would compete
// with its own share and guarantee, instead of those of the next item that fits.
func (s *Scheduler) prove(now time.Time) {
	for len(s.unproven) > 0 {
		q := s.unproven[len(s.unproven)-1]
		s.unproven[len(s.unproven)-1] = nil // so that the array does not keep removed queues
		s.unproven = s.unproven[:len(s.unproven)-1]
		q.unproven = false
		if q.tried == nil {
			continue
		}
		shape := q.tried.Shape()
		q.attempts = false
		switch refusal := s.fits(q, shape); {
		case refusal == nil:
		case !s.isDelay(refusal) && s.mayMakeRoom(q, refusal, now):
			q.attempts = true // it competes with those that fit
		default:
			s.refuse(q, shape, refusal, now)
			continue
		}
		q.branch.raise()
	}
}

func (s *Scheduler) unprove(q *queueState) {
	if !q.unproven {
		q.unproven = true
		s.unproven = append(s.unproven, q)
	}
}

// take removes an admitted unit from its queue.
func (s *Scheduler) take(q *queueState, u *unit) {
	shape := u.item.Shape()
	q.Take(&u.item)
	s.activate(q)
	s.unbookUnit(u) // after that, other queues compete with this one
	if shape.Len() == 0 {
		s.unreserve(shape)
	}
}

func (s *Scheduler) refuse(q *queueState, shape *queue.Shape, refusal *quota.Refusal, now time.Time) {
	before := shape.Cause()
	q.Refuse(shape, refusal, now)
	s.refused(shape, refusal)
	s.activate(q)
	s.reserveOwed(q, shape, refusal)
	s.explainer.refused(q, shape, before, now)
}

// flush is the safety net: after everything else was tried, it tries all parked shapes. It reports whether any of
// them fits.
func (s *Scheduler) flush(now time.Time) (found bool) {
	if s.flushAt == 0 || instantOf(now) < s.flushAt {
		return false
	}
	if s.hasMore() { // shapes have yet to be woken
		return true
	}
	s.flushAt = 0
	s.flushes++
	for _, shape := range s.waitIndex.All() {
		if q := s.queues[shape.Queue().Group.Queue()]; s.fits(q, shape) == nil {
			s.rescued++
			q.Retry(shape)
			s.activate(q)
			found = true
		}
	}
	return found
}

// Flushes returns how often all parked shapes were tried as a safety net.
func (s *Scheduler) Flushes() int { return s.flushes }

// Rescued returns the number of parked shapes that the safety net found to fit. It stays 0 unless
// there is a bug.
func (s *Scheduler) Rescued() int { return s.rescued }

// watchFronts handles the queues that only try their front. It updates the explanations of units that have reached or
// lost the front. Only the front unit has a reservation, because no other unit could use one. It reports whether
// reservations have changed.
func (s *Scheduler) watchFronts(now time.Time) (changed bool) {
	queues := s.frontsToCheck
	s.frontsToCheck = nil
	for _, q := range queues {
		q.checkFront = false
	}
	// All new reservations are made before others end, so that no room becomes free in between.
	for _, q := range queues {
		changed = q.Policy.FrontOnly && s.reserveForFront(q) || changed
	}
	for _, q := range queues {
		changed = q.Policy.FrontOnly && s.unreserveBehindFront(q) || changed
		changed = q.Policy.FrontOnly && s.giveUpBehindFront(q, now) || changed
		var front *unit
		if item := q.Front(); item != nil {
			front = s.units[item.Key]
		}
		if front == q.front {
			continue
		}
		for _, u := range []*unit{q.front, front} {
			if u != nil && !u.gone {
				s.explainLater(u, now)
			}
		}
		q.front = front
	}
	return changed
}

// runTimers handles the timers that are due, and reports whether there were any.
//
// It first removes all timers that are due. New timers for the same time wait until requeued units have been tried.
func (s *Scheduler) runTimers(now time.Time) bool {
	queues, shapes, units := s.explainer.dueLooks(instantOf(now)), s.explainer.due(instantOf(now)), s.timers.due(instantOf(now))
	for _, q := range queues {
		s.look(q, now)
	}
	for _, shape := range shapes {
		for _, item := range shape.Items() {
			s.explainLater(s.units[item.Key], now)
		}
	}
	for _, u := range units {
		if !u.gone {
			s.handleTimer(u, now)
		}
	}
	s.sendCorrections(now)
	return len(queues)+len(shapes)+len(units) > 0
}

func (s *Scheduler) handleTimer(u *unit, now time.Time) {
	checking := u.shown.checkAt != 0 && u.shown.checkAt <= instantOf(now)
	requeued := u.requeueAt != 0 && u.requeueAt <= instantOf(now) && u.item.Shape() == nil
	late := s.timers.checks[u] != 0 && s.timers.checks[u] <= instantOf(now)
	s.endDenial(u, instantOf(now))
	if requeued || late || s.isForsaken(u, now) || s.eviction(u, now) != nil || u.isExpired(now) || u.leaving != nil && u.leaving.checkAt != 0 && u.leaving.checkAt <= instantOf(now) {
		s.settle(u, now)
		if requeued && u.item.Shape() != nil {
			return // it must be tried before the reason for its wait is known
		}
	}
	s.seePodless(u, now)
	if !checking {
		s.schedule(u, now)
		return
	}
	u.shown.checkAt = 0
	s.schedule(u, now)
	s.explain(u, now)
}

// compose returns the requested write of a unit, or false if it is no longer needed.
func (s *Scheduler) compose(u *unit, kind Kind, now time.Time) (Write, bool) {
	w := Write{Kind: kind, Key: u.key(), UID: u.UID, Version: u.Version}
	if u.queue != nil {
		w.Queue, w.Quota = u.queue.name, u.queue.Group.Path()
	} else if u.charged != nil || s.backend == nil && u.holder != nil {
		// Its pods are charged to what is left of its last group, now or as soon as there is quota again.
		w.Quota = u.Quota
	}
	switch kind {
	case Dequeue:
		w.Attempt, w.Submitted, w.Growth, w.Grant = u.Attempts+1, u.Submitted, u.Growth, u.granted()
		w.AwaitsPods = u.queue != nil && u.queue.set.PodsReady.Timeout > 0 && !u.Growth
		w.Gates = u.queue != nil && u.queue.set.Gates && s.limits != nil && !u.Growth
		u.shown.clear()
	case Reserve:
		s.composeReserve(u, &w, now)
	case Requeue:
		s.composeRequeue(u, &w, now)
	case Evict:
		why := s.eviction(u, now)
		if why == nil {
			return Write{}, false
		}
		w.Reason, w.Message = why.Reason, why.Message()
		if u.leaving != nil && why == u.leaving.why {
			w.EvictedFor = u.leaving.forUID
		}
	case Expire:
		if !u.isExpired(now) {
			return Write{}, false
		}
		why := u.expiry()
		w.Reason, w.Message = why.Reason, why.Message()
	case Explain:
		if u.isMisplaced() {
			w.Kind = ShowPlace
			return w, true
		}
		refusal := s.currentRefusal(u, now)
		if refusal == nil || u.shows(refusal.Cause()) {
			return Write{}, false
		}
		w.Reason, w.Message, w.Figures = refusal.Reason, s.reported(u, refusal).Message(), refusal.IsLimit()
		if refusal.Impossible() && refusal.Asked > 0 {
			w.Resource, w.Asked = refusal.Resource, refusal.Asked
		}
		s.explainer.show(u, refusal.Cause(), now)
	case MarkOverQuota, ClearOverQuota:
		return w, s.composeOverQuota(u, &w)
	case MarkUnscheduled, ClearUnscheduled:
		return w, s.composeUnscheduled(u, &w)
	}
	return w, true
}

func (s *Scheduler) wakeTime() time.Time {
	at := earliest(s.timers.next(), s.explainer.next(), s.outbox.next(), s.over.checkAt, s.unscheduled.checkAt, s.nextClaim())
	if s.waitIndex.Len() > 0 {
		at = earliest(at, s.flushAt)
	}
	return at.time()
}

// fits returns why the first item of a shape does not fit; nil if it fits. The item can use room that is kept for
// itself or for units behind it in its queue.
func (s *Scheduler) fits(q *queueState, shape *queue.Shape) *quota.Refusal {
	if r := s.fitsNow(q, shape); r != nil || len(s.bookings) == 0 {
		return r
	}
	return s.delays(q, s.units[shape.Head().Key], shape.Demand, s.meters.now)
}

// fitsNow is fits without bookings.
func (s *Scheduler) fitsNow(q *queueState, shape *queue.Shape) *quota.Refusal {
	if len(q.claimed) == 0 {
		return q.Group.Fits(shape.Demand)
	}
	var r, unsent *quota.Refusal
	var inside int64
	s.exempt(q, shape.Head(), func() {
		if r = q.Group.Fits(shape.Demand); r == nil {
			unsent = s.fitsIfWithdrawn(s.units[shape.Head().Key])
		} else if !r.Final() {
			inside = s.room(r.Lack.Space)
		}
	})
	if r == nil {
		return unsent
	}
	if !r.Final() { // for others, the room that the shape waits for is smaller
		r.Lack.Amount += s.room(r.Lack.Space) - inside
	}
	return r
}

// fitsIfWithdrawn returns why a unit would not fit if its unsent evictions were withdrawn; nil if it would fit. They
// are withdrawn when the unit starts, so it must not use room that is kept for others if they were to get the room of
// its victims in return.
func (s *Scheduler) fitsIfWithdrawn(u *unit) (r *quota.Refusal) {
	unsent := func(do func(quota.Group, *quota.Charge)) (any bool) {
		for _, v := range s.victims[u.UID] {
			if c := v.leaving.planned; c != nil && v.leaving.at == 0 {
				do(c.group, &c.Charge)
				any = true
			}
		}
		return any
	}
	if unsent(s.planner.Plan) {
		r = u.queue.Group.Fits(u.Demand)
		unsent(s.planner.PlanUncharge)
	}
	return r
}
