package scheduler

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// refusal returns why the unit waits now; nil if it does not wait or was not tried yet.
func (u *unit) refusal(now time.Time) *quota.Refusal {
	if u.Phase != Waiting || u.assumed {
		return nil
	}
	if why := u.keptOut(); why != nil {
		return why
	}
	switch {
	case u.queue == nil:
		return nil
	case instantOf(now) < u.requeueAt:
		return inBackoff(backoff.State{Count: u.Requeues, Until: u.requeueAt.time()})
	}
	shape := u.item.Shape()
	if shape == nil {
		return nil
	}
	if r := shape.Refusal(); r != nil && r.Final() {
		return r
	}
	if front := u.queue.Front(); u.queue.Policy == queue.Block && front != nil && front != &u.item {
		return u.notAtFront(front)
	}
	return shape.Refusal()
}

// notAtFront returns that another unit is in front. The message is for whoever may read this unit, which
// includes nobody of other namespaces, so it names the front unit only if both have the same namespace.
func (u *unit) notAtFront(front *queue.Item) *quota.Refusal {
	r := &quota.Refusal{Reason: wellknown.ReasonNotAtFront}
	if namespaceOf(front.Key) == u.namespace() {
		r.Sentence = fmt.Sprintf("unit %s is ahead in queue %s, and policy Block admits only the front unit", front.Key, u.queue.name)
	} else {
		r.Sentence = fmt.Sprintf("a unit of another namespace is ahead in queue %s, and policy Block admits only the front unit", u.queue.name)
	}
	return r
}

// keptOut returns why the unit must not be queued; nil if it may be.
func (u *unit) keptOut() *quota.Refusal {
	switch {
	case u.Held != nil:
		return u.Held
	case u.placeRefusal != nil:
		return u.placeRefusal
	case u.queue != nil && u.queue.set.Stop != NotStopped:
		return &quota.Refusal{Reason: wellknown.ReasonQueueStopped, Sentence: fmt.Sprintf(
			"queue %s is stopped; an administrator resumes it by setting spec.stop to None", u.queue.name)}
	default:
		return nil
	}
}
