package scheduler

import (
	"fmt"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// eviction returns why the unit must be evicted; nil if it must not be, or if its eviction is already decided.
func (s *Scheduler) eviction(u *unit, now time.Time) *quota.Refusal {
	switch {
	case !u.Phase.holdsQuota() || u.Evicted || u.Stopped || u.Over:
		return nil
	case u.unadmitted:
		return &quota.Refusal{Reason: wellknown.ReasonNotAdmitted,
			Sentence: "something other than kube-queue-controller set the phase of the QueueUnit; the job was not admitted to its quota and is queued again"}
	case u.Phase == Reserved: // it frees its quota instead if anything keeps it out of its queue
		if u.leaving != nil && u.leaving.mayGo {
			return u.leaving.why
		}
		return nil
	case u.Inactive:
		return &quota.Refusal{Reason: wellknown.ReasonDeactivated, Sentence: "the job was deactivated after its release"}
	}
	if u.queue != nil && u.queue.set.Stop == Drain {
		return &quota.Refusal{Reason: wellknown.ReasonQueueStopped, Sentence: fmt.Sprintf("queue %s was drained; the job is queued again and waits until the queue is resumed", u.queue.name)}
	}
	if u.leaving != nil && u.leaving.mayGo {
		return u.leaving.why
	}
	if why := s.failedCheck(u, now); why != nil {
		return why
	}
	if u.isUnready(now) {
		return u.unready()
	}
	if end := u.endsAt(); end == 0 || end > instantOf(now) {
		return nil
	}
	return &quota.Refusal{Reason: wellknown.ReasonMaximumExecutionTime, Sentence: fmt.Sprintf(
		"the job exceeded its maximum execution time of %d s (annotation %s)", u.MaxSeconds, wellknown.MaxExecTimeAnnotation)}
}

// endsAt returns when the maximum execution time of the unit ends; 0 if it has none. A Reserved unit does not run
// yet.
func (u *unit) endsAt() instant {
	if u.MaxSeconds == 0 || u.dequeuedAt == 0 || u.Phase != Dequeued && u.Phase != Running || u.Evicted || u.Stopped || u.Over {
		return 0
	}
	return u.dequeuedAt.plus(time.Duration(u.MaxSeconds) * time.Second)
}

// evictFor evicts a unit so that another one gets its room.
func (s *Scheduler) evictFor(v *unit, claimant *unit, why *quota.Refusal, now time.Time) {
	v.leaving = &leaving{why: why, forUID: claimant.UID, forKey: claimant.key()}
	s.listVictim(v)
	s.planUncharge(v)
	s.requestStep(v, now)
	s.schedule(v, now)
}

// pace reports whether the eviction of a unit for another one can be sent now: at most MaxPerMinute units of a queue
// are evicted per minute. If not, it is tried again later.
func (s *Scheduler) pace(u *unit, now time.Time) bool {
	v, q := u.leaving, u.queue
	if v.why == nil || v.mayGo {
		return true
	}
	if q != nil {
		if at := q.mayEvictAt(now); at > instantOf(now) {
			v.checkAt = at
			return false
		}
		q.evicted(instantOf(now))
		s.changes++ // a unit of the queue may count on this eviction
	}
	v.mayGo, v.checkAt = true, 0
	return true
}

// evicted records that a unit of the queue was evicted for another one. It keeps at least 100 times, because the limit
// might become known only later.
func (q *queueState) evicted(at instant) {
	q.sent = append(q.sent, at)
	slices.Sort(q.sent)
	q.sent = q.sent[max(len(q.sent)-max(int(q.set.Preemption.MaxPerMinute), 100), 0):]
}

// mayEvictAt returns when the next unit of the queue may be evicted for another one.
func (q *queueState) mayEvictAt(now time.Time) instant {
	most := int(q.set.Preemption.MaxPerMinute)
	if most <= 0 || len(q.sent) < most {
		return instantOf(now)
	}
	return q.sent[len(q.sent)-most].plus(time.Minute)
}
