package scheduler

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// composeRequeue completes the write that frees the quota of a unit.
func (s *Scheduler) composeRequeue(u *unit, w *Write, now time.Time) {
	u.shown.clear()
	w.Requeue = s.requeueOf(u, now)
	why, waits := u.keptOut(), w.Requeue.Until.After(now)
	check := s.checkState(u, now)
	switch {
	case check.Verdict == Rejected:
		w.Rejected, w.Generation = true, u.Checking.Generation
		if why == nil {
			why, waits = rejection(&check), false
		}
	case check.Verdict == Retry && waits:
		waits = false
		if why == nil {
			why = checkBackoff(&check, w.Requeue)
		}
	case u.isUnready(now) && waits:
		waits = false
		if why == nil {
			why = podsBackoff(w.Requeue)
		}
	}
	if why == nil && waits {
		why = inBackoff(w.Requeue)
	} else if waits {
		why = &quota.Refusal{Reason: why.Reason, Sentence: fmt.Sprintf("%s; it is queued again at %s at the earliest, because it was stopped %d times in a short time",
			why.Message(), w.Requeue.Until.UTC().Format(time.RFC3339), w.Requeue.Count)}
	}
	u.Backoff = nil
	if why == nil {
		return
	}
	if why.Reason == wellknown.ReasonBackoff { // what has caused it is forgotten with the quota
		u.Backoff = why
	}
	w.Reason, w.Message = why.Reason, why.Message()
	s.explainer.show(u, quota.Cause{Reason: w.Reason}, now)
}

// requeueOf returns how often the unit has given its quota back and when it is queued again. Each
// round costs releases, pods and writes, so an owner who repeats it has to wait. It does not count that
// an administrator stops the queue.
func (s *Scheduler) requeueOf(u *unit, now time.Time) backoff.State {
	last := backoff.State{Count: u.Requeues, Until: u.requeueAt.time()}
	switch check := s.checkState(u, now); check.Verdict {
	case Retry:
		return s.checkRetries.Fail(last, time.UnixMicro(check.Since), now)
	case Rejected:
		return last
	}
	switch {
	case !u.Stopped: // its job never started
		return last
	case u.isUnready(now):
		return s.checkRetries.Fail(last, u.dequeuedAt.time(), now)
	}
	if u.queue != nil && u.queue.set.Stop != NotStopped {
		return last
	}
	return s.requeues.Step(last, now)
}

// rejection explains why a unit is not tried until it changes.
func rejection(check *CheckState) *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonAdmissionCheckRejected, Sentence: check.sentence("rejected the job", "it is queued again when it changes")}
}

// checkBackoff explains why a unit is not queued yet of which an admission check failed.
func checkBackoff(check *CheckState, s backoff.State) *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonBackoff, Sentence: check.sentence("failed", "the job is queued again at "+s.Until.UTC().Format(time.RFC3339))}
}

// podsBackoff explains why a unit is not queued yet whose pods were not ready in time.
func podsBackoff(s backoff.State) *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonBackoff, Sentence: "not all pods of the job were ready in time; the job is queued again at " +
		s.Until.UTC().Format(time.RFC3339)}
}

// inUnknownBackoff explains why a unit is not queued yet if its status has another reason meanwhile, so that the cause is
// not known any more.
func inUnknownBackoff(s backoff.State) *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonBackoff, Sentence: fmt.Sprintf(
		"the job gave its quota back %d times in a short time; it is queued again at %s", s.Count, s.Until.UTC().Format(time.RFC3339))}
}

// inBackoff explains why a unit is not queued yet that its owner has stopped.
func inBackoff(s backoff.State) *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonBackoff, Sentence: fmt.Sprintf(
		"the job was stopped %d times in a short time; it is queued again at %s", s.Count, s.Until.UTC().Format(time.RFC3339))}
}
