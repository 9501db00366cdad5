package scheduler

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// eviction is why the quota of the unit is to be taken back; nil when it is not, or
// when that has been decided already.
func (u *unit) eviction(now time.Time) *quota.Refusal {
	switch {
	case !u.Phase.holdsQuota() || u.Evicted || u.Stopped || u.Over:
		return nil
	case u.Inactive:
		return &quota.Refusal{Reason: wellknown.ReasonDeactivated, Sentence: "deactivated after its release"}
	}
	if u.queue != nil && u.queue.set.Stop == Drain {
		return &quota.Refusal{Reason: wellknown.ReasonQueueStopped, Sentence: fmt.Sprintf("queue %s was drained", u.queue.name)}
	}
	if end := u.endsAt(); end == 0 || end > instantOf(now) {
		return nil
	}
	return &quota.Refusal{Reason: wellknown.ReasonMaximumExecutionTime, Sentence: fmt.Sprintf(
		"exceeded the maximum execution time of %d s", u.MaxTime/time.Second)}
}

// endsAt is when a unit that may run no longer than that is to be evicted; 0
// when there is no such time. A reservation is not yet a run.
func (u *unit) endsAt() instant {
	if u.MaxTime == 0 || u.dequeuedAt == 0 || u.Phase != Dequeued && u.Phase != Running || u.Evicted || u.Stopped || u.Over {
		return 0
	}
	return u.dequeuedAt.plus(u.MaxTime)
}
