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
	check := s.checkState(u, now)
	if check.Verdict == Rejected {
		w.Rejected, w.Generation = true, u.Checking.Generation
	}
	why, isByOwner := u.keptOut(), check.Verdict < Retry && !u.wasUnready()
	if s.isForsaken(u, now) {
		why = s.off[u.Kind]
	}
	switch {
	case why == nil:
		why = s.whyLater(u, &check, w.Requeue, now)
	case isByOwner && w.Requeue.Until.After(now):
		why = &quota.Refusal{Reason: why.Reason, Sentence: fmt.Sprintf("%s; it is queued again at %s at the earliest, because it was stopped %d times in a short time",
			why.Message(), readable(w.Requeue.Until), w.Requeue.Count)}
	}
	u.Backoff = nil
	if why == nil {
		return
	}
	if why.Reason == wellknown.ReasonBackoff { // its cause is forgotten with the quota
		u.Backoff = why
	}
	w.Reason, w.Message = why.Reason, why.Message()
	s.explainer.show(u, quota.Cause{Reason: w.Reason}, now)
}

// whyLater explains why a unit that frees its quota is not queued immediately although nothing keeps it out; nil if
// it is.
func (s *Scheduler) whyLater(u *unit, check *CheckState, again backoff.State, now time.Time) *quota.Refusal {
	switch {
	case check.Verdict == Rejected:
		return &quota.Refusal{Reason: wellknown.ReasonAdmissionCheckRejected, Sentence: check.sentence("rejected the job", "it is queued again when it changes")}
	case !again.Until.After(now):
		return nil
	case check.Verdict == Retry:
		return &quota.Refusal{Reason: wellknown.ReasonBackoff, Sentence: check.sentence("failed", "the job is queued again at "+readable(again.Until))}
	case u.wasUnready():
		return &quota.Refusal{Reason: wellknown.ReasonBackoff, Sentence: fmt.Sprintf(
			"not all pods of the job were ready in time (requeue %d); the job is queued again at %s", again.Count, readable(again.Until))}
	default:
		return inBackoff("was stopped", again)
	}
}

// inBackoff explains why a unit is not queued yet: what its job did repeatedly.
func inBackoff(did string, s backoff.State) *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonBackoff, Sentence: fmt.Sprintf(
		"the job %s %d times in a short time; it is queued again at %s", did, s.Count, readable(s.Until))}
}

func readable(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// requeueOf returns how often the unit has freed its quota and when it is queued again. Each round costs releases, pods
// and writes, so owners who repeat it must wait. A stop of the queue by an administrator does not count.
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
	case u.wasUnready():
		return s.checkRetries.Fail(last, u.dequeuedAt.time(), now)
	}
	if u.queue != nil && u.queue.set.Stop != NotStopped {
		return last
	}
	return s.requeues.Step(last, now)
}
