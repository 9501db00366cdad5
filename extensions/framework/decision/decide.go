package decision

import (
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

const (
	// settledAfter is when a job's status no longer is that of before its release.
	settledAfter = 5 * time.Second
	// runningAfter keeps jobs that end at once from costing one more write.
	runningAfter = 2 * time.Second
	// queuingAfter keeps jobs that hardly wait from costing two more writes.
	queuingAfter = time.Second
	// queuingAnyway shows a job as queued though nobody has said why it waits.
	queuingAnyway = 3 * time.Second
	// suspendingAtMost is how long an admitted job is left to an operator that suspends
	// it. One that takes longer does not work, and will later find the job released.
	suspendingAtMost = 10 * time.Second
	// remainsAfter keeps jobs whose remains are soon gone from costing one more write.
	remainsAfter = 2 * time.Second
	// incompleteAtMost is how long a new job is left to an operator that makes the object
	// which says what the job asks for, before its owner is reported that there is none.
	incompleteAtMost = 5 * time.Second
	// lateWindow is how young a job is that nothing held when it was created and
	// that its operator has begun to start, but whose pods do not run yet.
	lateWindow = 10 * time.Second
)

// Decide says what to do about a job. Want, how the unit's spec should read, must
// be given while there is no unit or the unit waits.
func Decide(job State, unit *v1alpha1.QueueUnit, want *Want, now time.Time) Decision {
	switch {
	case unit == nil:
		return withoutUnit(job, now)
	case unit.DeletionTimestamp != nil, unit.Status.Phase.Ended():
		return Decision{}
	case job.End != nil:
		// An end beats all else, a pending eviction too.
		return finished(job, unit, now)
	case job.Deleting:
		return Decision{}
	}
	eviction := lifecycle.EvictionOf(unit)
	switch phase := unit.Status.Phase; {
	case phase.HoldsQuota() && eviction.UnderWay():
		return evicted(job, unit, eviction == lifecycle.EvictionForGood, now)
	case phase.Waits(), phase == v1alpha1.PhaseReserved:
		return waiting(job, unit, want, eviction == lifecycle.EvictionByUser, now)
	case eviction != lifecycle.EvictionNone:
		// The job has stopped; the controller takes the quota back.
		return Decision{}
	default:
		return admitted(job, unit, now)
	}
}

// finished: the unit ends with its job, once nothing that has pods is left of it.
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

// withoutUnit: a held job gets a unit. What runs already, or is not ours, is left
// alone.
func withoutUnit(job State, now time.Time) Decision {
	switch {
	case job.Foreign != "" || !job.Marked || job.Deleting || job.End != nil:
		return Decision{}
	case job.Unholdable != "":
		return Decision{Action: CreateUnit}
	case job.Suspended && job.Released != "":
		return Decision{Action: ForgetRelease}
	case job.Suspended && job.Incomplete && job.Created.Add(incompleteAtMost).After(now):
		return Decision{After: job.Created.Add(incompleteAtMost).Sub(now)}
	case job.Suspended:
		return Decision{Action: CreateUnit}
	case job.Running || job.Started && now.Sub(job.Created) > lateWindow:
		return Decision{}
	default:
		return Decision{Action: HoldLate}
	}
}

// waiting: the job stays suspended, its unit in step with it, until the
// controller has admitted it. A job that was suspended by hand after a release
// has lost its mark with that release, and still is in the queue.
func waiting(job State, unit *v1alpha1.QueueUnit, want *Want, byUser bool, now time.Time) Decision {
	left := job.Unholdable != "" // as it is: its unit only says why
	leaves := job.Foreign != "" || (job.Suspended || left) && !job.Marked && !byUser
	switch {
	case leaves && job.Queuing.On:
		return Decision{Action: HideQueuing}
	case leaves:
		return Decision{Action: LeaveQueue}
	case left:
	case !job.Suspended && byUser:
		return Decision{Action: Resume}
	case !job.Suspended:
		return Decision{Action: HoldAgain}
	}
	decision := Decision{Queued: unit.Status.Reason != ""}
	switch {
	case want != nil && want.Differs(unit):
		decision.Action = UpdateSpec
	case want != nil && want.Invalid != "" && !saysInvalid(unit, want.Invalid):
		decision.Action = MarkInvalid
	case !byUser:
		decision.Action, decision.After = queuing(job, unit, now)
	}
	return decision
}

// queuing: a job that has waited a while shows it, once its operator has written
// that it is suspended: the operator's own condition would else come last.
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

// admitted: the job is released once for this attempt. One that is suspended
// after that was suspended by hand.
func admitted(job State, unit *v1alpha1.QueueUnit, now time.Time) Decision {
	dequeued := unit.Status.Phase == v1alpha1.PhaseDequeued
	released := job.Released == Attempt(unit)
	switch {
	case dequeued && !released && job.Foreign != "":
		return Decision{Action: LeaveQueue}
	case dequeued && !released && !job.Active && job.RunKeys.Differs(unit):
		return Decision{Action: UpdateSpec}
	case dequeued && !released && !job.Active:
		// It was deactivated as it was admitted: the controller takes the quota back.
		return Decision{}
	case dequeued && !released && job.Queuing.On:
		return Decision{Action: HideQueuing}
	case dequeued && !released && job.Suspending && leftOf(suspendingAtMost, unit, now) > 0:
		return Decision{After: leftOf(suspendingAtMost, unit, now)}
	case dequeued && !released:
		// Not suspended as well: then it must still learn of its attempt.
		return Decision{Action: Release}
	case job.Suspended && job.Stopped:
		return whenSettled(Decision{Action: MarkSuspendedByUser}, unit, now)
	case job.Suspended:
		return Decision{}
	case job.RunKeys.Differs(unit):
		return Decision{Action: UpdateSpec}
	case !dequeued || !job.Running:
		return Decision{}
	}
	if left := job.RunningSince.Add(runningAfter).Sub(now); left > 0 {
		return Decision{After: left}
	}
	return Decision{Action: MarkRunning}
}

// evicted: the job is suspended, and when its pods are gone the unit says so. For
// good means that the job is deactivated with its suspension, and its unit before
// it says that it has stopped: nothing would keep it from being released again. Who
// activates the job after that has it stand in line.
func evicted(job State, unit *v1alpha1.QueueUnit, forGood bool, now time.Time) Decision {
	neverReleased := unit.Status.Phase != v1alpha1.PhaseRunning && job.Released != Attempt(unit)
	switch {
	case !job.Suspended && job.Unholdable != "": // it would fail if it were
		return Decision{}
	case !job.Suspended:
		return Decision{Action: Evict}
	case job.Marked && neverReleased: // then it has not run for too long either
		return Decision{Action: MarkStopped}
	case forGood && active(unit) && job.Active: // suspended by hand just before
		return Decision{Action: Evict}
	case forGood && active(unit):
		return Decision{Action: UpdateSpec}
	case job.Marked && job.Stopped:
		return whenSettled(Decision{Action: MarkStopped}, unit, now)
	case job.Stopped:
		// Without its mark it was not we who suspended it.
		return whenSettled(Decision{Action: MarkSuspendedByUser}, unit, now)
	default:
		return Decision{}
	}
}

// whenSettled waits with the decision that a released job has stopped until its
// status is its operator's answer to the release: that of a job which is suspended
// again at once may still be the one of before, while pods are being made. A unit
// that has got to Running is past that.
func whenSettled(d Decision, unit *v1alpha1.QueueUnit, now time.Time) Decision {
	if left := leftOf(settledAfter, unit, now); unit.Status.Phase == v1alpha1.PhaseDequeued && left > 0 {
		return Decision{After: left}
	}
	return d
}

// leftOf is how much is left of a while that began when the unit was dequeued; nothing,
// or less, once it is over.
func leftOf(while time.Duration, unit *v1alpha1.QueueUnit, now time.Time) time.Duration {
	if unit.Status.DequeueTime == nil {
		return 0
	}
	return unit.Status.DequeueTime.Add(while).Sub(now)
}
