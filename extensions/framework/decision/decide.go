package decision

import (
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

const (
	// settledAfter is how long after a release the job can still show its status from before the release.
	settledAfter = 5 * time.Second
	// runningAfter saves a write for jobs that end immediately.
	runningAfter = 2 * time.Second
	// queuingAfter saves two writes for jobs that hardly wait.
	queuingAfter = time.Second
	// queuingAnyway is when a job is shown as queued although its unit has no reason yet.
	queuingAnyway = 3 * time.Second
	// suspendingAtMost is how long the release waits for an operator that is suspending the job. If it takes longer,
	// the operator is not working, and will find the job released.
	suspendingAtMost = 10 * time.Second
	// remainsAfter saves a write for jobs whose remaining objects are soon deleted.
	remainsAfter = 2 * time.Second
	// deletedAfter is how long a job can be in deletion before its remaining pods are looked for.
	deletedAfter = 5 * time.Second
	// lookAgain is how long to wait before looking for them again.
	lookAgain = 10 * time.Second
	// incompleteAtMost is how long a new job waits for its operator to create the related
	// object, before the missing object is reported.
	incompleteAtMost = 4 * time.Second
	// lateWindow is the maximum age of a job that is suspended late although its operator has started it:
	// nothing held it at its creation, or its mark came later.
	lateWindow = 10 * time.Second
)

// Decide returns what to do about a job. It needs the desired spec of the unit if there is no unit, the unit waits, or
// the job is not released yet.
func Decide(job State, unit *v1alpha1.QueueUnit, desired *Desired, now time.Time) Decision {
	switch {
	case unit == nil:
		return withoutUnit(job, now)
	case unit.Status.Phase.Ended():
		return Decision{}
	case job.End != nil:
		// An end takes precedence over everything else, including a pending eviction.
		return finished(job, unit, now)
	case unit.DeletionTimestamp != nil && job.Suspended && !unit.Status.Phase.HoldsQuota():
		return Decision{} // the job gets another unit when this one is gone
	}
	decided := decide(job, unit, desired, now)
	if decided.Action == Nothing && job.Deleting && unit.Status.Phase.HoldsQuota() {
		return deleted(job, decided, now)
	}
	return decided
}

// deleted ends the unit of a job that a finalizer keeps, once all its pods are gone. It checks this repeatedly.
func deleted(job State, decided Decision, now time.Time) Decision {
	if left := job.DeletedAt.Add(deletedAfter).Sub(now); left > 0 {
		return Decision{After: left}
	}
	if job.Remains != "" {
		return Decision{After: lookAgain}
	}
	decided.Action, decided.After = MarkFinished, lookAgain
	return decided
}

// decide is Decide for a job and a unit that exist.
func decide(job State, unit *v1alpha1.QueueUnit, desired *Desired, now time.Time) Decision {
	eviction := lifecycle.EvictionOf(unit)
	switch phase := unit.Status.Phase; {
	case lifecycle.RestoredFor(unit) > 0 && !job.Suspended:
		// It is charged already. The controller will write that.
		return Decision{}
	case phase.HoldsQuota() && eviction.UnderWay():
		return evicted(job, unit, eviction == lifecycle.EvictionForGood, now)
	case phase.Waits(), phase == v1alpha1.PhaseReserved:
		return waiting(job, unit, desired, eviction, now)
	case eviction == lifecycle.EvictionNone:
		return admitted(job, unit, desired, now)
	case job.Suspended || job.Gated || job.Deleting || job.Foreign != "" || job.Unholdable != "":
		// The job has stopped; the controller takes the quota back.
		return Decision{}
	default:
		// It does that only if the job has no pods.
		return Decision{Action: HoldAgain}
	}
}

// finished ends the unit of an ended job once no object with pods of it is left.
func finished(job State, unit *v1alpha1.QueueUnit, now time.Time) Decision {
	if job.Remains == "" || !unit.Status.Phase.HoldsQuota() {
		return Decision{Action: MarkFinished}
	}
	if unit.Status.Phase == v1alpha1.PhaseRunning && unit.Status.Reason == wellknown.ReasonPodsRemain {
		return Decision{}
	}
	if left := job.RemainsSince.Add(remainsAfter).Sub(now); left > 0 {
		return Decision{After: left}
	}
	return Decision{Action: MarkRemains}
}

// withoutUnit creates a unit for a held job, and re-creates the lost unit of a released job that runs. It does not
// change other jobs that have run for a while or are not ours. A new job with the annotation of a release is a copy of
// a released job, and is queued like any other.
func withoutUnit(job State, now time.Time) Decision {
	old := now.Sub(job.Created) > lateWindow
	switch {
	case job.Foreign != "" || job.Deleting || job.End != nil:
		return Decision{}
	case !job.Marked && (job.Released == "" || job.Suspended || job.Unholdable != ""):
		return Decision{}
	case job.Unholdable != "":
		return Decision{Action: CreateUnit}
	case job.Gated && job.Suspended && job.Released != "": // until pods that are being deleted are gone
		return Decision{}
	case job.Suspended && job.Released != "":
		return Decision{Action: ForgetRelease}
	case job.Suspended && job.Incomplete && job.Created.Add(incompleteAtMost).After(now):
		return Decision{After: job.Created.Add(incompleteAtMost).Sub(now)}
	case job.Suspended:
		return Decision{Action: CreateUnit}
	case (job.Running || job.Started && (old || job.Gated)) && job.Released != "": // only a release opens a gate
		return Decision{Action: RestoreUnit}
	case old && (job.Running || job.Started), job.Running && job.Unstoppable != "":
		return Decision{NotQueued: job.Marked}
	case job.Gated: // nothing closes a gate again
		return Decision{NotQueued: job.Marked}
	default:
		return Decision{Action: HoldLate}
	}
}

// opened reports whether a user who may bypass the queue has opened the gates of a job that was not released.
func (job State) opened() bool { return job.Gated && !job.Suspended && job.Passing == 0 }

// waiting keeps the job suspended and its unit up to date until the controller admits the unit. A job that a user
// suspended after its release lost its mark at the release, but is still queued.
func waiting(job State, unit *v1alpha1.QueueUnit, desired *Desired, eviction lifecycle.Eviction, now time.Time) Decision {
	byUser := eviction == lifecycle.EvictionByUser
	unchanged := job.Unholdable != "" // the unit only reports why
	reserved := unit.Status.Phase == v1alpha1.PhaseReserved
	leaves := job.Foreign != "" || job.Deleting || job.opened() || (job.Suspended || unchanged) && !job.Marked && !byUser
	switch {
	case leaves && job.Queuing.On:
		return Decision{Action: HideQueuing}
	case leaves:
		return Decision{Action: LeaveQueue}
	case unchanged:
	case byUser && (!job.Suspended || job.Resumed):
		return Decision{Action: Resume}
	case !job.Suspended:
		return Decision{Action: HoldAgain}
	}
	decision := Decision{Queued: unit.Status.Reason != ""}
	switch {
	case reserved && eviction.Stopped():
		// The controller takes the quota back.
	case reserved && eviction == lifecycle.EvictionNone && desired != nil && desired.Invalid == "" && desired.Exchanges(unit):
		decision.Action = MarkChanged
	case desired != nil && desired.Differs(unit):
		decision.Action = UpdateSpec
	case eviction == lifecycle.EvictionChanged:
		decision.Action = AcceptChange
	case desired != nil && desired.Invalid != "" && !reportsInvalid(unit, desired.Invalid):
		decision.Action = MarkInvalid
	case desired != nil && desired.Invalid == "" && !active(unit) && unit.Status.Reason == wellknown.ReasonInvalidRequest:
		decision.Action = MarkValid // an active one is explained by the controller
	case !byUser:
		decision.Action, decision.After = queuing(job, unit, now)
	}
	return decision
}

// queuing shows a job as queued when it has waited for a while and its operator has written that it is suspended.
// Before that, our condition would not stay the last one.
func queuing(job State, unit *v1alpha1.QueueUnit, now time.Time) (Action, time.Duration) {
	if !job.ShowsQueuing || !job.Queuing.Ready || job.Queuing.Shown {
		return Nothing, 0
	}
	wait := queuingAfter
	if unit.Status.Reason == "" {
		wait = queuingAnyway
	}
	if left := submitted(unit).Add(wait).Sub(now); left > 0 {
		return Nothing, left
	}
	return ShowQueuing, 0
}

// admitted releases the job once for this attempt, if it is still the job that was admitted. If the job is suspended
// later, a user has suspended it. If it requests less later, it frees the difference.
func admitted(job State, unit *v1alpha1.QueueUnit, desired *Desired, now time.Time) Decision {
	dequeued := unit.Status.Phase == v1alpha1.PhaseDequeued
	released := job.Released == Attempt(unit)
	switch {
	case dequeued && !released && unit.DeletionTimestamp != nil:
		return Decision{}
	case dequeued && !released && (job.Foreign != "" || job.Deleting || job.opened()):
		return Decision{Action: LeaveQueue}
	case dequeued && !released && !job.Active && job.RunKeys.Differs(unit):
		return Decision{Action: UpdateSpec}
	case dequeued && !released && !job.Active:
		// It was deactivated while it was admitted: the controller takes the quota back.
		return Decision{}
	case dequeued && !released && desired != nil && desired.Exchanges(unit):
		return Decision{Action: MarkChanged}
	case dequeued && !released && job.Queuing.On:
		return Decision{Action: HideQueuing}
	case dequeued && !released && job.Suspending && timeLeft(suspendingAtMost, unit, now) > 0:
		return Decision{After: timeLeft(suspendingAtMost, unit, now)}
	case dequeued && !released:
		// Also if it is not suspended: its annotation must name this attempt.
		return Decision{Action: Release}
	case job.Passing > 0: // in place of pods that have ended
		return Decision{Action: Release}
	case job.Gated && job.Suspended && !job.Stopped: // until pods that are being deleted are gone
		return Decision{}
	case job.Gated && job.Suspended: // those that wait are another job
		return Decision{Action: LeaveQueue}
	case job.Suspended && job.Stopped:
		return whenSettled(Decision{Action: MarkSuspendedByUser}, job, unit, now)
	case job.Suspended:
		return Decision{}
	case job.RunKeys.Differs(unit):
		return Decision{Action: UpdateSpec}
	case job.Lowered != nil:
		return Decision{Action: LowerRequests}
	}
	return progress(job, unit, now)
}

// progress reports that a released job runs, and that its pods are ready if its queue waits for them. Once the pods are
// ready, it reports both in one write without delay, because a delay would no longer save a write.
func progress(job State, unit *v1alpha1.QueueUnit, now time.Time) Decision {
	ready := PodsReadyIsDue(job, unit)
	switch {
	case unit.Status.Phase == v1alpha1.PhaseDequeued && job.Running:
		if left := job.RunningSince.Add(runningAfter).Sub(now); left > 0 && !ready {
			return Decision{After: left}
		}
		return Decision{Action: MarkRunning}
	case ready:
		return Decision{Action: MarkPodsReady}
	default:
		return Decision{}
	}
}

// PodsReadyIsDue reports whether the unit's condition PodsReady must become true. It is written only if the
// controller has set it to false, and only once: a pod that is lost later is not reported.
func PodsReadyIsDue(job State, unit *v1alpha1.QueueUnit) bool {
	return job.Ready && lifecycle.AwaitsPods(unit)
}

// evicted suspends the job, and marks the unit as stopped when the pods are gone. With forGood, it also deactivates the
// job in the patch that suspends it, and the unit before it marks the unit as stopped. Otherwise nothing would prevent
// another release. If the job is activated again later, it is requeued.
func evicted(job State, unit *v1alpha1.QueueUnit, forGood bool, now time.Time) Decision {
	neverReleased := unit.Status.Phase != v1alpha1.PhaseRunning && job.Released != Attempt(unit)
	switch {
	case job.Gated && (job.Deleting || job.Suspended && !job.Stopped): // until the evicted pods are gone
		return Decision{}
	case job.Gated && job.Suspended && forGood: // pods that were created since are another job
		return Decision{Action: LeaveQueue}
	case job.Gated && job.Suspended:
		return Decision{Action: MarkStopped}
	case !job.Suspended && job.Unholdable != "": // the job would fail if suspended
		return Decision{}
	case !job.Suspended:
		return Decision{Action: Evict}
	case job.Marked && neverReleased: // so it has not exceeded its execution time either
		return Decision{Action: MarkStopped}
	case forGood && active(unit) && job.Active: // a user has just suspended it
		return Decision{Action: Evict}
	case forGood && active(unit):
		return Decision{Action: UpdateSpec}
	case job.Marked && job.Stopped && len(job.Grown) > 0: // so its autoscaler has stopped too
		return whenSettled(Decision{Action: LowerPods}, job, unit, now)
	case job.Marked && job.Stopped:
		return whenSettled(Decision{Action: MarkStopped}, job, unit, now)
	case job.Stopped:
		// It has no mark, so kube-queue did not suspend it.
		return whenSettled(Decision{Action: MarkSuspendedByUser}, job, unit, now)
	default:
		return Decision{}
	}
}

// whenSettled delays the decision that a released job has stopped until the operator has reacted to the release. If
// the job is suspended again immediately, its status may still be the old one while pods are being created. This
// cannot happen to a unit in phase Running.
func whenSettled(d Decision, job State, unit *v1alpha1.QueueUnit, now time.Time) Decision {
	// The release may have come long after the admission, for example after a failover.
	left := max(timeLeft(settledAfter, unit, now), job.ReleasedSince.Add(settledAfter).Sub(now))
	if unit.Status.Phase == v1alpha1.PhaseDequeued && left > 0 {
		return Decision{After: left}
	}
	return d
}

// timeLeft returns how much is left of a period that started when the unit was
// dequeued; 0 or less when it is over.
func timeLeft(while time.Duration, unit *v1alpha1.QueueUnit, now time.Time) time.Duration {
	if unit.Status.DequeueTime == nil {
		return 0
	}
	return unit.Status.DequeueTime.Add(while).Sub(now)
}
