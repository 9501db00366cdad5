package decision

import (
	"time"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// Action is one step, of one write or two.
type Action string

// What may be done. Writes on the job come with the event that reports them.
const (
	Nothing Action = ""
	// CreateUnit for a held job.
	CreateUnit Action = "CreateUnit"
	// ForgetRelease removes what a copied or revived job says of a release that
	// was not of this unit.
	ForgetRelease Action = "ForgetRelease"
	// HoldLate suspends a job that nothing held when it was created.
	HoldLate Action = "HoldLate"
	// HoldAgain suspends a queued job that was unsuspended by hand.
	HoldAgain Action = "HoldAgain"
	// Resume puts a job that was suspended by hand, and now unsuspended by hand,
	// back in line.
	Resume Action = "Resume"
	// LeaveQueue deletes the unit of a job that no longer asks to be queued.
	LeaveQueue Action = "LeaveQueue"
	// UpdateSpec brings the unit's spec in step with the job.
	UpdateSpec Action = "UpdateSpec"
	// MarkInvalid writes on the unit what is wrong with the job.
	MarkInvalid Action = "MarkInvalid"
	// ShowQueuing and HideQueuing write the job's own status.
	ShowQueuing Action = "ShowQueuing"
	HideQueuing Action = "HideQueuing"
	// Release the job: mark and suspend field, in one patch.
	Release Action = "Release"
	// Evict suspends a job whose quota is taken back.
	Evict Action = "Evict"
	// MarkStopped and MarkSuspendedByUser write condition Evicted: its reason says
	// that the job's pods are gone.
	MarkStopped         Action = "MarkStopped"
	MarkSuspendedByUser Action = "MarkSuspendedByUser"
	// MarkRunning and MarkFinished write the unit's phase.
	MarkRunning  Action = "MarkRunning"
	MarkFinished Action = "MarkFinished"
	// MarkRemains writes why the unit of a job that has ended still holds quota.
	MarkRemains Action = "MarkRemains"
)

// Decision is what to do about a job now.
type Decision struct {
	Action Action
	// Queued: the job waits and is reported why, by an event that is kept.
	Queued bool
	// After is when to look again though nothing has changed; 0: never.
	After time.Duration
}

// State is all that decides about a job, but its unit.
type State struct {
	framework.JobState
	// Foreign says why the job is not ours; empty when it is.
	Foreign string
	// Marked: the job asks to be queued.
	Marked bool
	// Released is the attempt that the job says it was released for.
	Released string
	RunKeys
	// Deleting: the job is being deleted.
	Deleting bool
	// Incomplete: the object that says what the job's pods are is not there.
	Incomplete bool
	// ShowsQueuing: the kind's status can say that a job is queued.
	ShowsQueuing bool
	// Remains names what is left of a job and keeps its quota, if anything;
	// RemainsSince is when the job was first seen to have ended so.
	Remains      string
	RemainsSince time.Time
	// Created is when the job was made; RunningSince when it was first seen to run.
	Created, RunningSince time.Time
}
