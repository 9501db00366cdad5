package decision

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// job returns a held job of a kind whose status can show that it is queued, with changes.
func job(changes ...func(*State)) State {
	state := State{
		JobState: framework.JobState{Suspended: true, Queuing: framework.Queuing{Ready: true}},
		Marked:   true,
		RunKeys:  RunKeys{Active: true},
		Created:  noon, ShowsQueuing: true,
	}
	for _, change := range changes {
		change(&state)
	}
	return state
}

func unmarked(s *State)    { s.Marked = false }
func released(s *State)    { s.Marked, s.Suspended, s.Released, s.Stopped = false, false, "1", false }
func suspended(s *State)   { s.Suspended = true }
func unsuspend(s *State)   { s.Suspended = false }
func stopped(s *State)     { s.Stopped = true }
func suspending(s *State)  { s.Suspending = true }
func started(s *State)     { s.Started = true }
func hidden(s *State)      { s.Queuing = framework.Queuing{Ready: true, On: true} }
func smaller(s *State)     { s.Lowered = map[string]any{"podSets": nil} }
func grown(s *State)       { s.Grown = []framework.Growth{{PodSet: "worker", Now: 4, Admitted: 2}} }
func shown(s *State)       { s.Queuing = framework.Queuing{Ready: true, On: true, Shown: true} }
func deleting(s *State)    { s.Deleting, s.DeletedAt = true, noon.Add(10*time.Second) }
func inactive(s *State)    { s.Active = false }
func minute(s *State)      { s.MaxTime = ptr.To[int32](60) }
func ended(s *State)       { s.End = &framework.End{Succeeded: true} }
func foreigner(s *State)   { s.Foreign = "it is a part of something" }
func incomplete(s *State)  { s.Incomplete = true }
func unready(s *State)     { s.Queuing.Ready = false }
func showless(s *State)    { s.ShowsQueuing = false; s.Queuing = framework.Queuing{} }
func resumed(s *State)     { s.Resumed = true }
func remarked(s *State)    { s.Marked = true }
func runs(s *State)        { s.Started, s.Running, s.RunningSince = true, true, noon.Add(10*time.Second) }
func allReady(s *State)    { s.Ready = true }
func unstoppable(s *State) { s.Unstoppable = "it goes on" }
func unholdable(s *State)  { s.Suspended, s.Unholdable = false, "its operator refuses it" }

func releasedSince(at time.Time) func(*State) {
	return func(s *State) { s.ReleasedSince = at }
}

// remaining ends the job, with an object that still existed at noon.
func remaining(s *State) { s.End, s.Remains, s.RemainsSince = &framework.End{}, "RayCluster x", noon }
func was(a string) func(*State) {
	return func(s *State) { s.Released = a }
}

// unit returns a unit that has waited since noon, with changes.
func unit(changes ...func(*v1alpha1.QueueUnit)) *v1alpha1.QueueUnit {
	u := &v1alpha1.QueueUnit{Spec: v1alpha1.QueueUnitSpec{
		SubmissionTime: ptr.To(metav1.NewMicroTime(noon)), Active: ptr.To(true), Preemptible: ptr.To(true),
	}}
	for _, change := range changes {
		change(u)
	}
	return u
}

func phase(p v1alpha1.QueueUnitPhase) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) {
		u.Status.Phase = p
		if p != "" && p != v1alpha1.PhaseEnqueued && p != v1alpha1.PhaseReserved {
			u.Status.Attempts = 1
		}
	}
}

func because(reason wellknown.Reason, message string) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) { u.Status.Reason, u.Status.Message = reason, message }
}

func condition(status metav1.ConditionStatus, reason wellknown.Reason) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) {
		u.Status.Conditions = append(u.Status.Conditions, metav1.Condition{Type: wellknown.ConditionEvicted, Status: status, Reason: string(reason)})
	}
}

// awaitsPods is for a unit in a queue that waits for pods; podsReady is for one whose pods were ready.
func awaitsPods(u *v1alpha1.QueueUnit) {
	podsReadyIs(u, metav1.ConditionFalse, wellknown.ReasonPodsNotReady)
}
func podsReady(u *v1alpha1.QueueUnit) {
	podsReadyIs(u, metav1.ConditionTrue, wellknown.ReasonPodsReady)
}

func podsReadyIs(u *v1alpha1.QueueUnit, status metav1.ConditionStatus, reason wellknown.Reason) {
	u.Status.Conditions = append(u.Status.Conditions, metav1.Condition{Type: wellknown.ConditionPodsReady, Status: status, Reason: string(reason)})
}

// restored is for a unit that replaces a lost one.
func restored(u *v1alpha1.QueueUnit) { u.Annotations = lifecycle.Restored(u.Annotations, "1") }

func beingDeleted(u *v1alpha1.QueueUnit) { u.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }

// same returns a desired spec that equals the unit's spec.
func same() *Desired {
	return &Desired{Spec: v1alpha1.QueueUnitSpec{Active: ptr.To(true), Preemptible: ptr.To(true)}}
}

func TestDecide(t *testing.T) {
	evicted := condition(metav1.ConditionTrue, "Preempted")
	drained := condition(metav1.ConditionTrue, wellknown.ReasonQueueStopped)
	overran := condition(metav1.ConditionTrue, wellknown.ReasonMaximumExecutionTime)
	changed := condition(metav1.ConditionTrue, wellknown.ReasonJobChanged)
	byUser := condition(metav1.ConditionTrue, wellknown.ReasonSuspendedByUser)
	atRest := condition(metav1.ConditionTrue, wellknown.ReasonStopped)
	requeued := condition(metav1.ConditionFalse, wellknown.ReasonResumed)
	enqueued, reserved, dequeued, running := phase(v1alpha1.PhaseEnqueued), phase(v1alpha1.PhaseReserved), phase(v1alpha1.PhaseDequeued), phase(v1alpha1.PhaseRunning)
	lacks := because("QuotaExceeded", "a lacks 1 cpu")
	quick, late := noon.Add(500*time.Millisecond), noon.Add(11*time.Second)
	bad := &Desired{Spec: v1alpha1.QueueUnitSpec{Active: ptr.To(false)}, Invalid: "no such class"}
	other, paused := same(), same()
	other.Spec.Priority, paused.Spec.Active = 7, ptr.To(false)
	measured := func(u *v1alpha1.QueueUnit) { u.Spec.PodSets = []v1alpha1.PodSet{{Name: "main", Count: 1}} }
	newer := same()
	newer.Spec.PodSets = []v1alpha1.PodSet{{Name: "main", Count: 1, QuotaScopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}}}
	elsewhere, firm := same(), same()
	elsewhere.Spec.QuotaName, firm.Spec.Preemptible = "another", ptr.To(false)

	tests := []struct {
		name string
		job  State
		unit *v1alpha1.QueueUnit
		want *Desired
		now  time.Time
		do   Decision
	}{
		// No unit.
		{"a held job gets a unit", job(), nil, same(), late, Decision{Action: CreateUnit}},
		{"a job without its related object is given time for it", job(incomplete), nil, bad, noon.Add(2 * time.Second), Decision{After: 2 * time.Second}},
		{"after which its unit says that nobody knows", job(incomplete), nil, bad, noon.Add(4 * time.Second), Decision{Action: CreateUnit}},
		{"it is held at once", job(incomplete, unsuspend), nil, bad, quick, Decision{Action: HoldLate}},
		{"a job without a mark is left alone", job(unmarked), nil, nil, late, Decision{}},
		{"a part of a larger job is left alone", job(foreigner), nil, nil, late, Decision{}},
		{"a job being deleted gets no unit", job(deleting), nil, same(), late, Decision{}},
		{"a job that has ended gets no unit", job(ended), nil, same(), late, Decision{}},
		{"a held copy of a released job forgets that release before it gets a unit", job(was("1")), nil, same(), late, Decision{Action: ForgetRelease}},
		{"a copy of a released job that nothing held is held like a new job", job(released), nil, nil, quick, Decision{Action: HoldLate}},
		{"but not if it runs: its unit was lost, and is created again", job(released, runs), nil, same(), quick, Decision{Action: RestoreUnit}},
		{"nor if it was started a while ago", job(released, started), nil, same(), late, Decision{Action: RestoreUnit}},
		{"whatever its mark says", job(released, runs, remarked), nil, same(), late, Decision{Action: RestoreUnit}},
		{"nor is a part of a larger job given a unit again", job(released, runs, foreigner), nil, nil, late, Decision{}},
		{"nor a job that is being deleted", job(released, runs, deleting), nil, same(), late, Decision{}},
		{"nor one that has ended", job(released, runs, ended), nil, same(), late, Decision{}},
		{"a running job waits for the controller to charge its new unit", job(released, runs), unit(restored), same(), late, Decision{}},
		{"also before the unit has a phase and whatever has changed", job(released, runs), unit(restored, enqueued), other, late, Decision{}},
		{"suspended meanwhile, it waits like any other", job(suspended, was("1"), showless), unit(restored, enqueued, lacks), same(), late, Decision{Queued: true}},
		{"the new unit has the attempt of the release", job(released, runs), unit(restored, dequeued), same(), noon.Add(12 * time.Second), Decision{Action: MarkRunning}},
		{"a suspended copy that opts out is left alone", job(released, suspended), nil, nil, late, Decision{}},
		{"a marked job that nothing held is suspended before it starts", job(unsuspend), nil, same(), late, Decision{Action: HoldLate}},
		{"a marked job that nothing held is suspended though its operator has just begun", job(unsuspend, started), nil, same(), quick, Decision{Action: HoldLate}},
		{"a marked job that has been started before anybody looked is left alone, and that is reported", job(unsuspend, started), nil, same(), late, Decision{NotQueued: true}},
		{"a marked job that has run for a while when first seen is left alone, and that is reported", job(unsuspend, runs), nil, same(), late, Decision{NotQueued: true}},
		{"a new one that runs already is suspended: a webhook may have added its mark", job(unsuspend, runs), nil, same(), quick, Decision{Action: HoldLate}},
		{"unless that may never stop it", job(unsuspend, runs, unstoppable), nil, same(), quick, Decision{NotQueued: true}},
		{"a new released job that runs gets its lost unit again", job(released, runs), nil, nil, quick, Decision{Action: RestoreUnit}},
		{"a job without a mark that runs when first seen gets no report", job(unsuspend, unmarked, runs), nil, nil, quick, Decision{}},
		{"nor does a job of another queue", job(unsuspend, foreigner, runs), nil, nil, late, Decision{}},
		{"nor does one that has ended", job(unsuspend, runs, ended), nil, nil, late, Decision{}},
		{"nor does one that is being deleted", job(unsuspend, runs, deleting), nil, nil, late, Decision{}},

		// Waiting.
		{"a job that waits without a reason shows nothing", job(), unit(), same(), quick, Decision{After: 2500 * time.Millisecond}},
		{"a job that waits is reported why as soon as the unit knows", job(showless), unit(enqueued, lacks), same(), quick, Decision{Queued: true}},
		{"a job does not show Queuing in its first second", job(), unit(enqueued, lacks), same(), quick, Decision{Queued: true, After: 500 * time.Millisecond}},
		{"a job shows Queuing after its first second", job(), unit(enqueued, lacks), same(), noon.Add(time.Second), Decision{Action: ShowQueuing, Queued: true}},
		{"a job shows Queuing after a while though nobody says why it waits", job(), unit(), same(), late, Decision{Action: ShowQueuing}},
		{"a job shows Queuing only once its operator has reported that it is suspended", job(unready), unit(enqueued, lacks), same(), late, Decision{Queued: true}},
		{"a job that shows Queuing is left so", job(shown), unit(enqueued, lacks), same(), late, Decision{Queued: true}},
		{"a condition Queuing that was buried is put last again", job(hidden), unit(enqueued, lacks), same(), late, Decision{Action: ShowQueuing, Queued: true}},
		{"a unit in backoff waits", job(shown), unit(phase(v1alpha1.PhaseBackoff), lacks), same(), late, Decision{Queued: true}},
		{"a reserved unit waits for its checks", job(shown), unit(reserved, because("WaitingForChecks", "")), same(), late, Decision{Queued: true}},
		{"the unit is kept in step with the job", job(), unit(enqueued, lacks), other, late, Decision{Action: UpdateSpec, Queued: true}},
		{"a unit from before there was a field is brought in step", job(), unit(enqueued, lacks, measured), newer, late, Decision{Action: UpdateSpec, Queued: true}},
		{"a job that changed between its admission and its release is not released", job(), unit(dequeued, measured), newer, late, Decision{Action: MarkChanged}},
		{"nor is one that belongs to another quota", job(), unit(dequeued), elsewhere, late, Decision{Action: MarkChanged}},
		{"nor one that may no longer be preempted", job(), unit(dequeued), firm, late, Decision{Action: MarkChanged}},
		{"a job that changes while its checks run gives its reservation back", job(), unit(reserved, measured), newer, late, Decision{Action: MarkChanged}},
		{"it is charged as before until that is done", job(), unit(reserved, measured, changed), newer, late, Decision{}},
		{"so it is if it was evicted", job(), unit(reserved, measured, atRest), newer, late, Decision{}},
		{"a reserved unit whose job has another priority only gets that", job(), unit(reserved), other, late, Decision{Action: UpdateSpec}},
		{"nor is one that has become invalid", job(), unit(dequeued, measured), bad, late, Decision{Action: MarkChanged}},
		{"a changed priority does not matter once it is admitted", job(), unit(dequeued), other, late, Decision{Action: Release}},
		{"while the quota is not yet taken back, nothing is done about a changed job", job(), unit(dequeued, measured, changed), newer, late, Decision{}},
		{"then the unit gets the new request", job(), unit(enqueued, measured, changed), newer, late, Decision{Action: UpdateSpec}},
		{"and is queued again", job(), unit(enqueued, changed), same(), late, Decision{Action: AcceptChange}},
		{"also if the job is invalid", job(), unit(enqueued, sleeping, changed), bad, late, Decision{Action: AcceptChange}},
		{"nor while it runs", job(released, runs), unit(running, measured), newer, late, Decision{}},
		{"the unit of a job gone bad is first made inactive", job(), unit(enqueued, lacks), bad, late, Decision{Action: UpdateSpec, Queued: true}},
		{"then it says what is wrong", job(), unit(enqueued, lacks, sleeping), bad, late, Decision{Action: MarkInvalid, Queued: true}},
		{"what is wrong is reported once", job(shown), unit(enqueued, because(wellknown.ReasonInvalidRequest, "no such class"), sleeping), bad, late, Decision{Queued: true}},
		{"a fixed job's unit is active again", job(shown), unit(enqueued, because(wellknown.ReasonInvalidRequest, "no such class"), sleeping), same(), late, Decision{Action: UpdateSpec, Queued: true}},
		{"if it stays inactive, its unit no longer says what was wrong", job(shown), unit(enqueued, because(wellknown.ReasonInvalidRequest, "no such class"), sleeping), paused, late, Decision{Action: MarkValid, Queued: true}},
		{"a reason of the controller is left alone", job(shown), unit(enqueued, because(wellknown.ReasonInvalidRequest, "a lacks requests")), same(), late, Decision{Queued: true}},
		{"a job whose mark was taken off leaves the queue", job(unmarked), unit(enqueued, lacks), same(), late, Decision{Action: LeaveQueue}},
		{"but first it no longer shows Queuing", job(unmarked, shown), unit(enqueued, lacks), same(), late, Decision{Action: HideQueuing}},
		{"a job that was given to another queue leaves this one", job(foreigner, unsuspend), unit(enqueued, lacks), same(), late, Decision{Action: LeaveQueue}},
		{"a queued job that was unsuspended by hand is suspended again", job(unsuspend), unit(enqueued, lacks), same(), late, Decision{Action: HoldAgain}},
		{"so it is when the mark was taken off with it", job(unsuspend, unmarked), unit(enqueued, lacks), same(), late, Decision{Action: HoldAgain}},
		{"so it is while its unit has quota reserved", job(unsuspend), unit(reserved), same(), late, Decision{Action: HoldAgain}},
		{"a queued job being deleted leaves the queue", job(deleting, unsuspend), unit(enqueued), same(), late, Decision{Action: LeaveQueue}},
		{"so does one with reserved quota", job(deleting), unit(reserved), same(), late, Decision{Action: LeaveQueue}},
		{"a running job being deleted keeps its quota", job(released, runs, deleting), unit(running), nil, late, Decision{After: 4 * time.Second}},
		{"until finalizers alone keep it", job(released, runs, deleting), unit(running), nil, late.Add(time.Minute), Decision{Action: MarkFinished, After: lookAgain}},
		{"an evicted job being deleted is not waited for", job(released, deleting, suspended), unit(running, evicted), nil, late.Add(time.Minute), Decision{Action: MarkFinished, After: lookAgain}},
		{"but it is suspended", job(released, runs, deleting, unsuspend), unit(running, evicted), nil, late.Add(time.Minute), Decision{Action: Evict}},
		{"an evicted job being deleted is suspended", job(released, runs, deleting), unit(running, evicted), nil, late, Decision{Action: Evict}},
		{"a unit being deleted is waited for", job(), unit(enqueued, beingDeleted), same(), late, Decision{}},
		{"a job that ended while it was queued ends its unit", job(ended), unit(enqueued), same(), late, Decision{Action: MarkFinished}},

		// Release.
		{"a dequeued job is released", job(), unit(dequeued), nil, late, Decision{Action: Release}},
		{"but not while its operator suspends it", job(suspending), unit(dequeued, dequeuedAt(noon)), nil, noon.Add(time.Second), Decision{After: 9 * time.Second}},
		{"an operator that does not work is not waited for", job(suspending), unit(dequeued, dequeuedAt(noon)), nil, noon.Add(10 * time.Second), Decision{Action: Release}},
		{"a job that is evicted while its operator suspends it has no pods", job(suspending), unit(dequeued, evicted, dequeuedAt(noon)), nil, noon.Add(time.Second), Decision{Action: MarkStopped}},
		{"a dequeued job first no longer shows Queuing", job(shown), unit(dequeued), nil, late, Decision{Action: HideQueuing}},
		{"a job released for an attempt before is released for this one", job(was("0")), unit(dequeued), nil, late, Decision{Action: Release}},
		{"a job that was unsuspended by hand as it was dequeued still learns of its attempt", job(unsuspend), unit(dequeued), nil, late, Decision{Action: Release}},
		{"a dequeued job being deleted is not released", job(deleting), unit(dequeued), nil, late, Decision{Action: LeaveQueue}},
		{"a job whose unit is being deleted is not released", job(), unit(dequeued, beingDeleted), same(), late, Decision{}},
		{"a running job whose unit is being deleted ends it", job(released, ended), unit(running, beingDeleted), nil, late, Decision{Action: MarkFinished}},
		{"a dequeued job given to another queue is not released but leaves", job(foreigner), unit(dequeued), nil, late, Decision{Action: LeaveQueue}},
		{"a released job is not released twice", job(released), unit(dequeued), nil, late, Decision{}},
		{"the manifest applied again to a released job changes nothing", job(released, remarked), unit(dequeued), nil, late, Decision{}},

		// Running and ending.
		{"a job that has just begun to run is not yet reported as running", job(released, runs), unit(dequeued), nil, noon.Add(11 * time.Second), Decision{After: time.Second}},
		{"a job that has run for 2 seconds is reported as running", job(released, runs), unit(dequeued), nil, noon.Add(12 * time.Second), Decision{Action: MarkRunning}},
		{"a running job is left alone", job(released, runs), unit(running), nil, noon.Add(time.Minute), Decision{}},
		{"the manifest applied again to a running job changes nothing", job(released, runs, remarked), unit(running), nil, noon.Add(time.Minute), Decision{}},
		{"a job that has ended ends its unit, though it was never reported as running", job(released, runs, ended), unit(dequeued), nil, late, Decision{Action: MarkFinished}},
		{"an end beats a pending eviction", job(released, ended), unit(running, evicted), nil, late, Decision{Action: MarkFinished}},
		{"an ended unit stays as it is", job(released, ended), unit(phase(v1alpha1.PhaseSucceeded)), nil, late, Decision{}},
		{"the manifest applied again to an ended job changes nothing", job(remarked, suspended, was("1")), unit(phase(v1alpha1.PhaseFailed)), nil, late, Decision{}},
		{"a running job instructed to be inactive has its unit say so", job(released, runs, inactive), unit(running), nil, late, Decision{Action: UpdateSpec}},
		{"so has one whose time to run is changed", job(released, runs, minute), unit(running), nil, late, Decision{Action: UpdateSpec}},
		{"a released job that requests less gives it back", job(released, smaller), unit(dequeued), nil, late, Decision{Action: LowerRequests}},
		{"so does a running one", job(released, runs, smaller), unit(running), nil, late, Decision{Action: LowerRequests}},
		{"but first its unit says that it is to stop", job(released, runs, smaller, inactive), unit(running), nil, late, Decision{Action: UpdateSpec}},
		{"a limit that the unit has already is not written again", job(released, runs, minute), unit(running, limited), nil, late, Decision{}},

		// A queue that waits for pods.
		{"pods that are ready are reported together with the run", job(released, runs, allReady), unit(dequeued, awaitsPods), nil, noon.Add(10 * time.Second), Decision{Action: MarkRunning}},
		{"a job of which only some pods run is reported as running after 2 seconds", job(released, runs), unit(dequeued, awaitsPods), nil, noon.Add(10 * time.Second), Decision{After: 2 * time.Second}},
		{"then it runs", job(released, runs), unit(dequeued, awaitsPods), nil, noon.Add(12 * time.Second), Decision{Action: MarkRunning}},
		{"and is not ready", job(released, runs), unit(running, awaitsPods), nil, late, Decision{}},
		{"until all its pods are", job(released, runs, allReady), unit(running, awaitsPods), nil, late, Decision{Action: MarkPodsReady}},
		{"which is reported once", job(released, runs, allReady), unit(running, podsReady), nil, late, Decision{}},
		{"a pod that is lost later is not followed", job(released, runs), unit(running, podsReady), nil, late, Decision{}},
		{"a unit without the condition gets none", job(released, runs, allReady), unit(running), nil, late, Decision{}},
		{"nor does it run sooner", job(released, runs, allReady), unit(dequeued), nil, noon.Add(10 * time.Second), Decision{After: 2 * time.Second}},
		{"nor does one whose pods were ready before it ran", job(released, runs, allReady), unit(dequeued, podsReady), nil, noon.Add(10 * time.Second), Decision{After: 2 * time.Second}},
		{"a job whose pods have all succeeded need not run", job(released, started, allReady), unit(dequeued, awaitsPods), nil, late, Decision{Action: MarkPodsReady}},
		{"a job that has ended only ends", job(released, runs, allReady, ended), unit(dequeued, awaitsPods), nil, late, Decision{Action: MarkFinished}},
		{"before the release nothing is ready", job(allReady), unit(dequeued, awaitsPods), nil, late, Decision{Action: Release}},
		{"nor after the job was suspended by hand", job(released, suspended, allReady), unit(running, awaitsPods), nil, late, Decision{}},
		{"an evicted job is not reported as ready", job(released, runs, allReady), unit(running, awaitsPods, condition(metav1.ConditionTrue, wellknown.ReasonPodsReadyTimeout)), nil, late, Decision{Action: Evict}},
		{"nor one that has stopped", job(suspended, stopped, allReady, was("1")), unit(running, awaitsPods, atRest), nil, late, Decision{}},
		{"what else has changed is written first", job(released, runs, allReady, minute), unit(running, awaitsPods), nil, late, Decision{Action: UpdateSpec}},

		// Something remains.
		{"a job that has ended keeps its quota while something of it remains", job(released, remaining), unit(running), nil, noon.Add(time.Second), Decision{After: time.Second}},
		{"after 2 seconds its unit says so", job(released, remaining), unit(running), nil, noon.Add(2 * time.Second), Decision{Action: MarkRemains}},
		{"so it does though the job was never reported as running", job(released, remaining), unit(dequeued), nil, noon.Add(2 * time.Second), Decision{Action: MarkRemains}},
		{"it says so once", job(released, remaining), unit(running, because(wellknown.ReasonPodsRemain, "")), nil, late, Decision{}},
		{"its unit ends when nothing is left", job(released, ended), unit(running, because(wellknown.ReasonPodsRemain, "")), nil, late, Decision{Action: MarkFinished}},
		{"what remains of a job that held no quota keeps none", job(remaining), unit(enqueued), same(), noon, Decision{Action: MarkFinished}},

		// Jobs that their operator would reject if they were suspended.
		{"a job that cannot be held gets a unit that says so", job(unholdable), nil, bad, late, Decision{Action: CreateUnit}},
		{"so does one that runs already", job(unholdable, runs), nil, bad, late, Decision{Action: CreateUnit}},
		{"without a mark it is left alone", job(unholdable, unmarked), nil, nil, late, Decision{}},
		{"it is not suspended", job(unholdable, showless), unit(enqueued, because(wellknown.ReasonInvalidRequest, "no such class"), sleeping), bad, late, Decision{Queued: true}},
		{"its unit goes with its mark", job(unholdable, unmarked), unit(enqueued, lacks), bad, late, Decision{Action: LeaveQueue}},

		// Suspended by hand.
		{"a released job suspended by hand is waited for until its pods are gone", job(released, suspended), unit(dequeued), nil, late, Decision{}},
		{"then its unit says that it was suspended by hand", job(released, suspended, stopped), unit(dequeued), nil, late, Decision{Action: MarkSuspendedByUser}},
		{"so it is with a running job", job(released, suspended, stopped), unit(running), nil, late, Decision{Action: MarkSuspendedByUser}},
		{"it is reported once", job(released, suspended, stopped), unit(running, byUser), nil, late, Decision{}},
		{"unsuspended again while its pods still hold the quota, it is suspended again", job(released), unit(running, byUser), nil, late, Decision{Action: HoldAgain}},
		{"so is an evicted job", job(unsuspend, was("1")), unit(running, atRest), nil, late, Decision{Action: HoldAgain}},
		{"unless it is another's now", job(unsuspend, was("1"), foreigner), unit(running, atRest), nil, late, Decision{}},
		{"a job suspended by hand has lost its mark but stays in the queue", job(released, suspended, stopped), unit(enqueued, byUser, because("SuspendedByUser", "")), same(), late, Decision{Queued: true}},
		{"resumed and suspended again by a policy, it is requeued", job(released, suspended, stopped, remarked, resumed), unit(enqueued, byUser), same(), late, Decision{Action: Resume}},
		{"one that waits for quota is not", job(suspended, stopped, resumed, shown), unit(enqueued, because("QuotaExceeded", "")), same(), late, Decision{Queued: true}},
		{"marked by its suspend field when it is suspended by hand, it waits", job(released, suspended, stopped, remarked), unit(enqueued, byUser, because("SuspendedByUser", "")), same(), late, Decision{Queued: true}},
		{"suspended and without its annotations, it stays as it is", job(suspended, stopped, remarked), unit(enqueued, byUser, because("SuspendedByUser", "")), same(), late, Decision{Queued: true}},
		{"unsuspended by hand, it is requeued", job(released), unit(enqueued, byUser), same(), late, Decision{Action: Resume}},
		{"a crash between the two writes of that leaves a job to be suspended again", job(released), unit(enqueued, requeued), same(), late, Decision{Action: HoldAgain}},

		// Evicted.
		{"an evicted job is suspended", job(released, runs), unit(running, evicted), nil, late, Decision{Action: Evict}},
		{"its pods are waited for", job(suspended, was("1")), unit(running, evicted), nil, late, Decision{}},
		{"then its unit says that it has stopped", job(suspended, stopped, was("1")), unit(running, evicted), nil, late, Decision{Action: MarkStopped}},
		{"what its autoscaler added is lowered first", job(suspended, stopped, was("1"), grown), unit(running, evicted), nil, late, Decision{Action: LowerPods}},
		{"not while the autoscaler may run", job(suspended, was("1"), grown), unit(running, evicted), nil, late, Decision{}},
		{"that is reported once", job(suspended, stopped, was("1")), unit(running, atRest), nil, late, Decision{}},
		{"a job whose queue is drained is suspended", job(released, runs), unit(running, drained), nil, late, Decision{Action: Evict}},
		{"and stopped without being deactivated, for it is to run again", job(suspended, stopped, was("1")), unit(running, drained), nil, late, Decision{Action: MarkStopped}},
		{"a job evicted before its release has no pods", job(), unit(dequeued, evicted), nil, late, Decision{Action: MarkStopped}},
		{"so has one that only held a reservation", job(), unit(reserved, evicted), nil, late, Decision{Action: MarkStopped}},
		{"a job that was suspended by hand before its eviction is not requeued", job(released, suspended, stopped), unit(running, evicted), nil, late, Decision{Action: MarkSuspendedByUser}},
		{"a job that its operator would refuse if it were suspended goes on", job(released, runs, unholdable), unit(running, evicted), nil, late, Decision{}},
		{"a deactivated job is suspended like any other", job(released, runs, inactive), unit(running, sleeping, condition(metav1.ConditionTrue, wellknown.ReasonDeactivated)), nil, late, Decision{Action: Evict}},
		{"activated again meanwhile, it stops all the same", job(suspended, stopped, was("1")), unit(running, sleeping, condition(metav1.ConditionTrue, wellknown.ReasonDeactivated)), nil, late, Decision{Action: MarkStopped}},
		{"and is requeued after that", job(stopped, was("1")), unit(enqueued, sleeping, because("Inactive", "")), same(), late, Decision{Action: UpdateSpec, Queued: true}},
		{"a job that is deactivated as it is admitted is not released", job(inactive), unit(dequeued), nil, late, Decision{Action: UpdateSpec}},
		{"its quota is taken back first", job(inactive), unit(dequeued, sleeping), nil, late, Decision{}},
		{"that a job suspended right after its release has stopped may be old news", job(suspended, stopped, was("1")), unit(dequeued, evicted, dequeuedAt(noon)), nil, noon.Add(time.Second), Decision{After: 4 * time.Second}},
		{"the same when it was suspended by hand", job(released, suspended, stopped), unit(dequeued, dequeuedAt(noon)), nil, noon.Add(time.Second), Decision{After: 4 * time.Second}},
		{"the release may have come long after the admission", job(released, suspended, stopped, releasedSince(noon.Add(10*time.Second))), unit(dequeued, dequeuedAt(noon)), nil, late, Decision{After: 4 * time.Second}},
		{"after a while it is not", job(suspended, stopped, was("1")), unit(dequeued, evicted, dequeuedAt(noon)), nil, noon.Add(5 * time.Second), Decision{Action: MarkStopped}},
		{"a job that ran for too long is suspended and deactivated", job(released, runs), unit(running, overran), nil, late, Decision{Action: Evict}},
		{"its unit is made inactive before it says that it has stopped", job(suspended, stopped, was("1"), inactive), unit(running, overran), nil, late, Decision{Action: UpdateSpec}},
		{"then its pods are waited for", job(suspended, was("1"), inactive), unit(running, overran, sleeping), nil, late, Decision{}},
		{"then it says that it has stopped", job(suspended, stopped, was("1"), inactive), unit(running, overran, sleeping), nil, late, Decision{Action: MarkStopped}},
		{"activated again while it stops, it is not deactivated a second time", job(suspended, stopped, was("1")), unit(running, overran, sleeping), nil, late, Decision{Action: MarkStopped}},
		{"a job that ran for too long and was suspended by hand is deactivated too", job(released, suspended, stopped), unit(running, overran), nil, late, Decision{Action: Evict}},
		{"a job whose time went by before its release has not run, and is requeued", job(), unit(dequeued, overran), nil, late, Decision{Action: MarkStopped}},
		{"a job that ended as its time was over has ended", job(released, ended), unit(running, overran), nil, late, Decision{Action: MarkFinished}},
		{"an evicted job that is requeued waits", job(shown, was("1")), unit(phase(v1alpha1.PhaseBackoff), atRest, lacks), same(), late, Decision{Queued: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Decide(test.job, test.unit, test.want, test.now); got != test.do {
				t.Errorf("it decided %+v, not %+v", got, test.do)
			}
		})
	}
}

func sleeping(u *v1alpha1.QueueUnit) { u.Spec.Active = ptr.To(false) }
func dequeuedAt(at time.Time) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) { u.Status.DequeueTime = &metav1.MicroTime{Time: at} }
}

func limited(u *v1alpha1.QueueUnit) { u.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](60) }

// These invariants are true for every job and every unit.
func TestDecideNever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		state := State{
			JobState: framework.JobState{
				Suspended: flag("suspended"), Started: flag("started"), Running: flag("running"), Ready: flag("all ready"), Stopped: flag("stopped"),
				Suspending: flag("suspending"),
				Queuing:    framework.Queuing{Ready: flag("ready"), On: flag("on"), Shown: flag("shown")},
			},
			Marked: flag("marked"), RunKeys: RunKeys{Active: flag("active")}, Deleting: flag("deleting"), ShowsQueuing: flag("shows"),
			Incomplete: flag("incomplete"),
			Released:   rapid.SampledFrom([]string{"", "0", "1", "2"}).Draw(t, "released"),
			Foreign:    rapid.SampledFrom([]string{"", "another's"}).Draw(t, "foreign"), Created: noon,
		}
		if flag("ended") {
			state.End = &framework.End{}
		}
		if flag("unholdable") {
			state.Unholdable = "its operator refuses it"
		}
		if flag("remains") {
			state.Remains, state.RemainsSince = "RayCluster x", noon
		}
		if flag("smaller") {
			smaller(&state)
		}
		var u *v1alpha1.QueueUnit
		if flag("has unit") {
			u = unit(phase(rapid.SampledFrom([]v1alpha1.QueueUnitPhase{"", "Enqueued", "Backoff", "Reserved", "Dequeued", "Running", "Succeeded", "Failed"}).Draw(t, "phase")))
			if reason := rapid.SampledFrom([]wellknown.Reason{"", "Preempted", "Deactivated", "QueueStopped", "MaximumExecutionTime", "Stopped", "SuspendedByUser", "JobChanged"}).Draw(t, "evicted"); reason != "" &&
				(reason != wellknown.ReasonMaximumExecutionTime || u.Status.Phase != v1alpha1.PhaseReserved) { // a job that was not released cannot run for too long
				condition(metav1.ConditionTrue, reason)(u)
			}
		}
		if u != nil {
			switch rapid.SampledFrom([]string{"", "False", "True"}).Draw(t, "PodsReady") {
			case "False":
				awaitsPods(u)
			case "True":
				podsReady(u)
			}
		}
		if u != nil && flag("unit inactive") {
			sleeping(u)
		}
		if u != nil && flag("dequeued at noon") {
			dequeuedAt(noon)(u)
		}
		later := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "later")
		soon := later < time.Minute
		desired := same()
		if flag("changed") {
			desired.Spec.QuotaName = "another"
		}
		do := Decide(state, u, desired, noon.Add(later))
		switch {
		case do.Action == Release && u.Status.Phase != v1alpha1.PhaseDequeued:
			t.Fatalf("released in phase %q", u.Status.Phase)
		case do.Action == Release && state.Suspending && u.Status.DequeueTime != nil && soon:
			t.Fatalf("released while its operator suspends it")
		case do.Action == Release && desired.Exchanges(u):
			t.Fatalf("released with another request than was admitted")
		case do.Action == UpdateSpec && u.Status.Phase == v1alpha1.PhaseReserved && desired.Exchanges(u):
			t.Fatalf("what a reserved unit is charged changes without its checks")
		case do.Action == Release && state.Deleting:
			t.Fatalf("released while it is being deleted")
		case do.Action == Release && state.Released == Attempt(u):
			t.Fatalf("released twice for one attempt")
		case do.Action == LowerRequests && (state.Suspended || state.End != nil || u.Status.Phase == v1alpha1.PhaseDequeued && state.Released != Attempt(u)):
			t.Fatalf("a unit is lowered that does not follow its job")
		case do.Action == MarkPodsReady && (!state.Ready || !lifecycle.AwaitsPods(u)):
			t.Fatalf("pods are reported as ready that are not, or that nobody waits for")
		case do.Action == MarkPodsReady && (state.Suspended || state.End != nil || u.Status.Phase == v1alpha1.PhaseDequeued && (state.Running || state.Released != Attempt(u))):
			t.Fatalf("pods are reported as ready of a job that is not released, or in a write of their own although the job starts to run")
		case !isMove(do.Action, u):
			t.Fatalf("%s on a unit that is %+v", do.Action, u)
		case do.Action != Nothing && u != nil && u.Status.Phase.Ended():
			t.Fatalf("%s on an ended unit", do.Action)
		case do.Action != Nothing && u == nil && state.Foreign != "":
			t.Fatalf("%s on another's job", do.Action)
		case u == nil && !state.Marked && state.Released == "" && do.Action != Nothing:
			t.Fatalf("%s on an unmarked job", do.Action)
		case do.Action == CreateUnit && state.Incomplete && state.Unholdable == "" && later < incompleteAtMost:
			t.Fatalf("a unit that says that nothing is known was made at once")
		case u != nil && do.Action == CreateUnit, u == nil && do.Action == Release:
			t.Fatalf("%s does not fit", do.Action)
		case (do.Action == HoldAgain || do.Action == HoldLate || do.Action == Resume) && state.Suspended:
			t.Fatalf("%s on a suspended job", do.Action)
		case do.Action == Evict && state.Suspended && (lifecycle.EvictionOf(u) != lifecycle.EvictionForGood || !state.Active || !active(u)):
			t.Fatalf("nothing is left to do by %s", do.Action)
		case do.Action == MarkStopped && lifecycle.EvictionOf(u) == lifecycle.EvictionForGood && active(u) && state.Released == Attempt(u):
			t.Fatalf("a job that ran for too long would run again")
		case (do.Action == HoldAgain || do.Action == HoldLate || do.Action == Resume || do.Action == Evict && !state.Suspended) && state.Unholdable != "":
			t.Fatalf("%s on a job that its operator would refuse", do.Action)
		case do.Action == MarkFinished && state.Remains != "" && u.Status.Phase.HoldsQuota():
			t.Fatalf("the quota is given back while %s are there", state.Remains)
		case state.Deleting && u == nil && do.Action != Nothing:
			t.Fatalf("%s on a job being deleted", do.Action)
		case state.Deleting && u != nil && u.Status.Phase.Waits() && state.End == nil && do.Action != LeaveQueue && do.Action != HideQueuing:
			t.Fatalf("a job being deleted stays in the queue: %s", do.Action)
		}
	})
}

// isMove reports whether the table of moves allows the action in the unit's phase.
func isMove(action Action, unit *v1alpha1.QueueUnit) bool {
	return !slices.ContainsFunc(lifecycle.Moves(), func(m lifecycle.Move) bool {
		return m.Name == lifecycle.Name(action) && m.By == lifecycle.Extensions && !m.Begins(unit)
	})
}

func TestParametersFollowTheJob(t *testing.T) {
	job := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"provreq.kube-queue/maxRunDurationSeconds":      "600",
		"provreq.kueue.x-k8s.io/maxRunDurationSeconds":  "1",
		"provreq.kueue.x-k8s.io/zone":                   "b",
		"scheduling.x-k8s.io/suspend":                   "true",
		"not.provreq.kube-queue/maxRunDurationSeconds2": "1",
	}}}
	w := &Desired{Parameters: ParametersOf(job)}
	unit := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"provreq.kube-queue/old": "x", "other": "y"}}}
	want := map[string]any{"provreq.kube-queue/maxRunDurationSeconds": "600", "provreq.kube-queue/zone": "b", "provreq.kube-queue/old": nil}
	if got := w.ParameterChanges(unit); !maps.Equal(got, want) {
		t.Errorf("changes are %v, not %v", got, want)
	}
	unit.Annotations = maps.Clone(w.Parameters)
	if got := w.ParameterChanges(unit); got != nil {
		t.Errorf("a unit in step is changed: %v", got)
	}
}

func TestWantPatchesOnlyWhatDiffers(t *testing.T) {
	list := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	tests := []struct {
		name   string
		have   v1alpha1.QueueUnitSpec
		want   v1alpha1.QueueUnitSpec
		fields []string
	}{
		{"nothing when the spec is as the API server wrote it back", v1alpha1.QueueUnitSpec{Resource: list("1"), PodSets: []v1alpha1.PodSet{{Name: "main", Count: 1}}},
			v1alpha1.QueueUnitSpec{Resource: list("1000m"), PodSets: []v1alpha1.PodSet{{
				Name: "main", Count: 1, Requests: corev1.ResourceList{}, QuotaScopes: []corev1.ResourceQuotaScope{}, Unset: map[corev1.ResourceName]string{},
			}}}, nil},
		{"the priority alone", v1alpha1.QueueUnitSpec{Priority: 1}, v1alpha1.QueueUnitSpec{Priority: 2}, []string{"priority"}},
		{"a class that is gone", v1alpha1.QueueUnitSpec{PriorityClassName: "high"}, v1alpha1.QueueUnitSpec{}, []string{"priorityClassName"}},
		{"requests of another size", v1alpha1.QueueUnitSpec{Resource: list("1")}, v1alpha1.QueueUnitSpec{Resource: list("2")}, []string{"resource"}},
		{"pods of another scope", v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "main"}}},
			v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "main", QuotaScopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}}}}, []string{"podSets"}},
		{"pods that say less", v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "main"}}},
			v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "main", Unset: map[corev1.ResourceName]string{corev1.ResourceLimitsCPU: "a"}}}}, []string{"podSets"}},
		{"a limit on its time", v1alpha1.QueueUnitSpec{}, v1alpha1.QueueUnitSpec{MaximumExecutionTimeSeconds: ptr.To[int32](5)}, []string{"maximumExecutionTimeSeconds"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.want.Active, test.want.Preemptible = ptr.To(true), ptr.To(true)
			changes := (&Desired{Spec: test.want}).Changes(&v1alpha1.QueueUnit{Spec: test.have})
			if len(changes) != len(test.fields) {
				t.Errorf("changes are %v", changes)
			}
			for _, field := range test.fields {
				if _, there := changes[field]; !there {
					t.Errorf("changes %v lack %s", changes, field)
				}
			}
		})
	}
}
