package scheduler

import (
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
)

// fail records that the unit failed to make room. at is when it might succeed without any change; 0 if never.
func (s *Scheduler) fail(u *unit, at instant, now time.Time) {
	wait, patientUntil := time.Duration(0), instant(0)
	if u.claim != nil {
		wait, patientUntil = u.claim.wait, u.claim.patientUntil
	}
	s.dropFailure(u)
	if u.queue.failing >= maxFailing {
		return
	}
	u.queue.failing++
	wait = min(max(2*wait, claimRetry), maxClaimRetry)
	c := &claim{unit: u, queue: u.queue, notBefore: instantOf(now).plus(wait), wait: wait,
		patientUntil: patientUntil, changes: s.changes}
	u.claim = c
	if at == 0 {
		c.idle = true
		s.idle = append(s.idle, c)
		return
	}
	c.retryAt = max(at, c.notBefore)
	s.failed.Set(c)
}

// retryClaims retries the units whose attempts may succeed now. It reports whether there are any.
func (s *Scheduler) retryClaims(now time.Time) (retried bool) {
	s.watchHolders(now)
	s.scheduleIdle()
	for c, ok := s.failed.Top(); ok && c.retryAt <= instantOf(now); c, ok = s.failed.Top() {
		s.failed.Remove(c)
		u := c.unit
		c.retryAt, c.changes = 0, s.changes-1 // can be tried
		shape := u.item.Shape()
		if shape == nil || shape.Head() != &u.item {
			s.dropFailure(u) // it is tried when it is the first of its shape
			continue
		}
		if shape.Parked() {
			u.queue.Retry(shape)
			s.activate(u.queue)
			retried = true
		}
	}
	return retried
}

// isScheduled reports whether a failed attempt will be repeated at a set time or after a change. Otherwise, the unit
// can be tried now.
func (c *claim) isScheduled() bool { return c.idle || c.retryAt != 0 }

// watch schedules attempts of the first units of the queue, if it allows preemption, because more units can be
// evicted for them.
func (s *Scheduler) watch(q *queueState) {
	if q != nil && q.set.Preemption.WithinQueue && !q.heldMore {
		q.heldMore = true
		s.heldMore = append(s.heldMore, q)
	}
}

// retryFailed repeats failed attempts as soon as their intervals allow, because units may now be protected for less
// time.
func (s *Scheduler) retryFailed() {
	for _, c := range slices.Clone(s.failed.All()) {
		c.retryAt = c.notBefore
		s.failed.Set(c)
	}
}

// moreToEvict records that more units of the queue, or of those without one, can be evicted than before.
func (s *Scheduler) moreToEvict(q *queueState) {
	s.changes++
	s.watch(q)
}

// watchHolders schedules attempts of the first units of the queues in which more units can be evicted than before.
func (s *Scheduler) watchHolders(now time.Time) {
	for _, q := range s.heldMore {
		q.heldMore = false
		if s.queues[q.name] != q {
			continue
		}
		q.InOrder(func(item *queue.Item) bool {
			u := s.units[item.Key]
			if !s.mayPreempt(q, u) {
				return false // nor can those behind it, whose priority is not higher
			}
			if u.claim == nil && item.Shape().Parked() && item.Shape().Head() == item {
				s.fail(u, instantOf(now), now)
			}
			return !q.Policy.FrontOnly && q.failing < maxFailing
		})
	}
	s.heldMore = nil
}

// scheduleIdle schedules the idle attempts that failed before the last change.
func (s *Scheduler) scheduleIdle() {
	if s.changes == s.changesSeen || len(s.idle) == 0 {
		return
	}
	s.changesSeen = s.changes
	s.idle = slices.DeleteFunc(s.idle, func(c *claim) bool {
		if c.changes == s.changes {
			return false
		}
		c.idle, c.retryAt = false, c.notBefore
		s.failed.Set(c)
		return true
	})
}

// nextClaim returns when the first failed attempt is repeated; 0 if none is.
func (s *Scheduler) nextClaim() instant {
	s.scheduleIdle()
	if c, ok := s.failed.Top(); ok {
		return c.retryAt
	}
	return 0
}

// dropFailure forgets that an attempt failed.
func (s *Scheduler) dropFailure(u *unit) {
	c := u.claim
	if c == nil || c.made {
		return
	}
	u.claim = nil
	c.queue.failing--
	s.failed.Remove(c)
	if c.idle {
		s.idle = slices.DeleteFunc(s.idle, func(other *claim) bool { return other == c })
	}
}
