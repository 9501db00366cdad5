package scheduler

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// refusal returns why the unit waits; nil if it does not wait or has not been tried yet.
func (u *unit) refusal(now time.Time) *quota.Refusal { return u.refusalShared(now, nil) }

// refusalShared is refusal, but composes a refusal that units of a queue share only once and stores it in shared,
// unless shared is nil.
func (u *unit) refusalShared(now time.Time, shared sharedRefusals) *quota.Refusal {
	if u.Phase == Reserved {
		return u.pendingCheck()
	}
	if u.Phase != Waiting || u.assumed {
		return nil
	}
	q := u.queue
	switch {
	case u.Held != nil, u.placeRefusal != nil, q == nil:
		return u.keptOut()
	case !q.admits():
		return shared.of(q, isClosed, q.closed)
	case instantOf(now) < u.requeueAt && u.Backoff != nil:
		return u.Backoff
	case instantOf(now) < u.requeueAt:
		// Its status now has another reason, so the cause is no longer known.
		return inBackoff("gave its quota back", backoff.State{Count: u.Requeues, Until: u.requeueAt.time()})
	}
	shape := u.item.Shape()
	switch {
	case shape == nil:
		return nil
	case u.claim != nil && u.claim.made:
		return u.claim.refusal()
	}
	if r := shape.Refusal(); r != nil && r.Final() {
		return r
	}
	if q.blocks() {
		return shared.of(q, isBlocked, q.blocked)
	}
	if front := q.Front(); q.Policy.FrontOnly && front != nil && front != &u.item {
		return shared.of(q, isBehind, u.notAtFront)
	}
	return shape.Refusal()
}

// sharedRefusals are the refusals that many units of a queue share.
type sharedRefusals map[*queueState]*[3]*quota.Refusal

// Refusals that are the same for many units of a queue.
const (
	isClosed = iota
	isBlocked
	isBehind
)

// of returns the refusal of the queue. It composes it the first time.
func (s sharedRefusals) of(q *queueState, which int, compose func() *quota.Refusal) *quota.Refusal {
	if s == nil {
		return compose()
	}
	known := s[q]
	if known == nil {
		known = &[3]*quota.Refusal{}
		s[q] = known
	}
	if known[which] == nil {
		known[which] = compose()
	}
	return known[which]
}

// notAtFront explains that another unit is in front. The message does not name that unit: readers of this unit might
// not be allowed to read the other one, and the name would be wrong as soon as the other unit is gone.
func (u *unit) notAtFront() *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonNotAtFront,
		Sentence: fmt.Sprintf("another unit is ahead in queue %s, and policy %s admits only the front unit", u.queue.name, u.queue.Policy)}
}

// currentRefusal is like refusal, but checks again what a parked shape lacks, so that the message is true when it is
// written. It returns nil if the unit is about to be tried.
func (s *Scheduler) currentRefusal(u *unit, now time.Time) *quota.Refusal {
	r, shape := u.refusal(now), u.item.Shape()
	if r == nil || shape == nil || r != shape.Refusal() {
		return r
	}
	before := shape.Cause()
	current := s.fits(u.queue, shape)
	if current != nil {
		shape.Refine(current)
		s.explainer.refused(u.queue, shape, before, now)
	}
	return current
}

// reported returns the refusal of a unit as the unit shows it: with all resources that it lacks.
func (s *Scheduler) reported(u *unit, r *quota.Refusal) *quota.Refusal {
	backend, able := s.backend.(quota.Explainer)
	if shape := u.item.Shape(); able && shape != nil {
		return r.WithOthers(backend, u.queue.Group, shape.Demand)
	}
	return r
}

// isOutdated reports whether the unit waits and shows a cause that is no longer true or no longer why it waits.
func (s *Scheduler) isOutdated(u *unit, now time.Time) bool {
	cause, q := u.shown.last(), u.queue
	if cause == (quota.Cause{}) || u.Phase != Waiting || u.assumed {
		return false
	}
	is := func(r *quota.Refusal) bool {
		return r != nil && r.Reason == cause.Reason && (u.shown.restored() || r.Cause() == cause)
	}
	switch cause.Reason {
	case wellknown.ReasonQueueStopped:
		return q == nil || q.set.Stop == NotStopped
	case wellknown.ReasonAdmissionCheckMissing:
		return q == nil || q.missingCheck == "" || cause.Node != "" && cause.Node != q.missingCheck
	case wellknown.ReasonBackoff:
		return instantOf(now) >= u.requeueAt
	case wellknown.ReasonPreempting:
		return u.claim == nil || !u.claim.made
	case wellknown.ReasonWaitingForPods:
		return q == nil || !q.blocks() || u.item.Shape() == nil // a unit that is kept out of the queue does not wait for pods
	case wellknown.ReasonNotAtFront:
		return q == nil || !q.Policy.FrontOnly || u.item.Shape() == nil || q.Front() == &u.item
	case wellknown.ReasonQuotaExceeded, wellknown.ReasonMaxJobs, wellknown.ReasonBorrowingPaused,
		wellknown.ReasonExceedsMaxQuota, wellknown.ReasonExceedsMinQuota:
		if q == nil || u.item.Shape() == nil { // it is not even tried, for a reason other than what it lacks
			return true
		}
	default: // it comes from the unit or its place in the quota
		if is(u.Held) || is(u.placeRefusal) {
			return false
		}
		if q == nil || cause.Node == "" || cause.Resource == "" {
			return true
		}
	}
	group, able := q.Group.(quota.Verifier)
	return able && !group.StillRefuses(u.Demand, cause)
}

// keptOut returns why the unit must not be queued; nil if it can be.
func (u *unit) keptOut() *quota.Refusal {
	switch {
	case u.Held != nil:
		return u.Held
	case u.placeRefusal != nil:
		return u.placeRefusal
	case u.queue != nil:
		return u.queue.closed()
	default:
		return nil
	}
}

// closed returns why the queue admits no unit; nil if it does.
func (q *queueState) closed() *quota.Refusal {
	switch {
	case q.set.Stop != NotStopped:
		return &quota.Refusal{Reason: wellknown.ReasonQueueStopped, Sentence: fmt.Sprintf(
			"queue %s is stopped; an administrator resumes it with kubectl kube-queue resume %[1]s, or sets its spec.stop to None", q.name)}
	case q.missingCheck != "":
		return &quota.Refusal{Reason: wellknown.ReasonAdmissionCheckMissing, Node: q.missingCheck, Sentence: fmt.Sprintf(
			"queue %s lists admission check %s, which does not exist; an administrator creates the AdmissionCheck or removes it from spec.admissionChecks of the queue",
			q.name, q.missingCheck)}
	default:
		return nil
	}
}
