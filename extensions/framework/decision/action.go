package decision

import (
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// Action is one step, with one or two writes.
type Action string

// Actions. A write on the job comes with the event that reports it.
const (
	Nothing Action = ""
	// CreateUnit for a held job.
	CreateUnit Action = "CreateUnit"
	// RestoreUnit re-creates the lost unit of a released job that runs.
	RestoreUnit Action = "RestoreUnit"
	// ForgetRelease removes the annotation of another unit's release from a copied or restored job.
	ForgetRelease Action = "ForgetRelease"
	// HoldLate suspends a job that was not held at its creation.
	HoldLate Action = "HoldLate"
	// HoldAgain suspends a job that a user unsuspended while it is queued, or its quota is taken back.
	HoldAgain Action = "HoldAgain"
	// Resume requeues a job that a user suspended and now unsuspended again.
	Resume Action = "Resume"
	// LeaveQueue deletes the unit of a job that has lost its mark or is being deleted.
	LeaveQueue Action = "LeaveQueue"
	// UpdateSpec updates the unit's spec from the job.
	UpdateSpec Action = "UpdateSpec"
	// LowerRequests lowers the requests of an admitted unit to those of its job.
	LowerRequests Action = "LowerRequests"
	// MarkInvalid writes to the unit why the job is invalid.
	MarkInvalid Action = "MarkInvalid"
	// MarkValid removes that from the unit of a job that is valid again and stays inactive.
	MarkValid Action = "MarkValid"
	// ShowQueuing and HideQueuing write the job's own status.
	ShowQueuing Action = "ShowQueuing"
	HideQueuing Action = "HideQueuing"
	// Release clears the mark and the suspend field of the job in one patch, or opens the gates of the pods that can
	// pass.
	Release Action = "Release"
	// Evict suspends a job whose unit is evicted, or deletes pods that have passed their gate.
	Evict Action = "Evict"
	// LowerPods lowers the numbers of pods that the autoscaler of an evicted job has raised.
	LowerPods Action = "LowerPods"
	// MarkStopped and MarkSuspendedByUser write condition Evicted: its reason reports
	// that the job's pods are gone.
	MarkStopped         Action = "MarkStopped"
	MarkSuspendedByUser Action = "MarkSuspendedByUser"
	// MarkChanged requeues a unit whose job has changed its request since the admission. AcceptChange ends this once
	// the unit has the new request.
	MarkChanged  Action = "MarkChanged"
	AcceptChange Action = "AcceptChange"
	// MarkPodsReady writes condition PodsReady. MarkRunning writes it too if it is due.
	MarkPodsReady Action = "MarkPodsReady"
	// MarkRunning and MarkFinished write the unit's phase.
	MarkRunning  Action = "MarkRunning"
	MarkFinished Action = "MarkFinished"
	// MarkRemains writes why the unit of an ended job still holds quota.
	MarkRemains Action = "MarkRemains"
)

// Decision is the next step for a job.
type Decision struct {
	Action Action
	// Queued: the job waits, and an event that is kept alive reports why.
	Queued bool
	// NotQueued: the job has the mark, but was already running when it was first seen, and an event reports it.
	NotQueued bool
	// After is when to check again even if nothing changes; 0: never.
	After time.Duration
}

// Continues reports whether gated pods of a job can replace those that have ended. If they cannot, they are another
// job.
func Continues(job State, unit *v1alpha1.QueueUnit) bool {
	return job.Gated && job.Suspended && (unit == nil || !unit.Status.Phase.HoldsQuota() || job.Passing > 0)
}

// State is the input of a decision about a job, except its unit.
type State struct {
	framework.JobState
	// Foreign is the reason why the job is not ours to queue; empty if it is.
	Foreign string
	// Marked: the job has an opt-in mark.
	Marked bool
	// Resumed: the owner has unsuspended a job that was released before, and it was suspended again.
	Resumed bool
	// Released is the attempt that the job was released for, according to its annotation.
	Released string
	RunKeys
	// Lowered are the fields of the unit's spec where a released job requests less than was admitted; nil for none.
	// See LoweredOf.
	Lowered map[string]any
	// Passing is the number of gated pods of an admitted job that can pass. See framework.GatedPods.
	Passing int
	// Grown are the numbers of pods that the autoscaler of an evicted job has raised above the admitted ones. See
	// GrownOf.
	Grown []framework.Growth
	// Deleting: the job is being deleted, since DeletedAt.
	Deleting  bool
	DeletedAt time.Time
	// Incomplete: parts of the job that determine its request do not exist yet, such as its related object.
	Incomplete bool
	// ShowsQueuing: the kind's status can show that a job is queued.
	ShowsQueuing bool
	// Remains names an object of the job that still exists and keeps the quota, if any; RemainsSince is when the job
	// was first seen ended while such an object existed.
	Remains      string
	RemainsSince time.Time
	// Created is when the job was created; ReleasedSince when an admitted job was first seen
	// released, and RunningSince when it was first seen running.
	Created, ReleasedSince, RunningSince time.Time
}
