package scheduler

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// eviction returns why the unit must be evicted; nil if it must not be or its eviction is already
// decided.
func (s *Scheduler) eviction(u *unit, now time.Time) *quota.Refusal {
	switch {
	case !u.Phase.holdsQuota() || u.Evicted || u.Stopped || u.Over:
		return nil
	case u.unadmitted:
		return &quota.Refusal{Reason: wellknown.ReasonNotAdmitted,
			Sentence: "somebody other than kube-queue-controller set the phase of the QueueUnit; the job was not admitted to its quota and is queued again"}
	case u.Phase == Reserved: // what keeps it out of its queue makes it give its quota back
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

// endsAt returns when a unit with a maximum execution time must be evicted; 0 if never. A reserved unit
// does not run yet.
func (u *unit) endsAt() instant {
	if u.MaxSeconds == 0 || u.dequeuedAt == 0 || u.Phase != Dequeued && u.Phase != Running || u.Evicted || u.Stopped || u.Over {
		return 0
	}
	return u.dequeuedAt.plus(time.Duration(u.MaxSeconds) * time.Second)
}
