package scheduler

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// PodsReady is what a queue requires of the pods of its units.
type PodsReady struct {
	// Timeout is how long the pods of a unit can take to become ready after its admission. If they take longer, the
	// unit is evicted. 0 means no limit.
	Timeout time.Duration
	// Blocks is whether the queue admits no other unit while pods of an admitted one are not ready. It has no effect
	// without a Timeout.
	Blocks bool
}

// podsDeadline returns when the unit must be evicted unless its pods are ready by then; 0 if never.
func (u *unit) podsDeadline() instant {
	if !u.AwaitsPods || u.queue == nil || u.queue.set.PodsReady.Timeout <= 0 || u.Phase != Dequeued && u.Phase != Running {
		return 0
	}
	return u.dequeuedAt.plus(u.queue.set.PodsReady.Timeout)
}

// isUnready reports whether the pods of the unit have taken too long to become ready.
func (u *unit) isUnready(now time.Time) bool {
	deadline := u.podsDeadline()
	return deadline != 0 && deadline <= instantOf(now)
}

// wasUnready reports whether the unit was evicted because of its pods, not earlier for another reason after which it
// took long to stop. Times in objects are in seconds.
func (u *unit) wasUnready() bool {
	deadline := u.podsDeadline()
	return deadline != 0 && u.leaving != nil && u.leaving.at.plus(time.Second) > deadline
}

// unready explains why such a unit is evicted.
func (u *unit) unready() *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonPodsReadyTimeout, Sentence: fmt.Sprintf(
		"not all pods of the job were ready %v after its release (podsReadyTimeout of queue %s); the job is stopped and queued again",
		u.queue.set.PodsReady.Timeout, u.queue.name)}
}

// mayBlock reports whether the queue admits no unit while pods of another one are not ready.
func (q *queueState) mayBlock() bool { return q.set.PodsReady.Blocks && q.set.PodsReady.Timeout > 0 }

// blocks reports whether the queue admits no unit now because pods of another one are not ready.
func (q *queueState) blocks() bool { return len(q.awaiting) > 0 && q.mayBlock() }

// blocked explains why a unit of such a queue waits.
func (q *queueState) blocked() *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonWaitingForPods, Sentence: fmt.Sprintf(
		"pods of another job of queue %s are not ready yet, and the queue admits no other job until they are (blockUntilPodsReady)", q.name)}
}

// awaitPods records whether the unit's new queue waits for the unit's pods. It also waits for a Reserved unit, whose
// pods do not exist yet.
func (s *Scheduler) awaitPods(u *unit, q *queueState, now time.Time) {
	if was := u.countedIn; was != nil && was != q {
		s.setAwaiting(was, u, false, now)
	}
	if q != nil {
		s.setAwaiting(q, u, q.mayBlock() && (u.assumed || u.Phase == Reserved || u.AwaitsPods && u.Phase.holdsQuota() && !u.Over), now)
	}
}

func (s *Scheduler) setAwaiting(q *queueState, u *unit, awaits bool, now time.Time) {
	if _, did := q.awaiting[u]; did == awaits {
		return
	}
	blocked := q.blocks()
	if awaits {
		q.awaiting[u] = struct{}{}
	} else {
		delete(q.awaiting, u)
	}
	if blocked == q.blocks() || s.queues[q.name] != q {
		return
	}
	s.activate(q)
	if blocked {
		q.Shapes(func(shape *queue.Shape) {
			for _, item := range shape.Items() {
				s.explainLater(s.units[item.Key], now)
			}
		})
	}
}
