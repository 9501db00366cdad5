package lifecycle

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Writer is who makes a move: one of the programs or the cluster.
type Writer string

// The writers. The names of the programs are also the names of their ServiceAccounts.
const (
	Controller Writer = "kube-queue-controller"
	Extensions Writer = "job-extensions"
	// Collector is the garbage collection of the cluster.
	Collector Writer = "garbage collection"
)

// Name is the name of a move. The moves of job-extensions have the names of its decisions.
type Name string

// The moves.
const (
	Create           Name = "CreateUnit"
	Explain          Name = "Explain"
	MarkInvalid      Name = "MarkInvalid"
	MarkValid        Name = "MarkValid"
	Reserve          Name = "Reserve"
	ExplainCheck     Name = "ExplainCheck"
	ReturnReserved   Name = "ReturnReserved"
	DecideCheck      Name = "DecideCheck"
	Dequeue          Name = "Dequeue"
	ShowPlace        Name = "ShowPlace"
	RequeueUnqueued  Name = "RequeueUnqueued"
	MarkRunning      Name = "MarkRunning"
	MarkPodsReady    Name = "MarkPodsReady"
	LowerRequests    Name = "LowerRequests"
	MarkRemains      Name = "MarkRemains"
	MarkFinished     Name = "MarkFinished"
	Expire           Name = "Expire"
	Evict            Name = "Evict"
	Deactivate       Name = "Deactivate"
	MarkStopped      Name = "MarkStopped"
	Requeue          Name = "Requeue"
	MarkSuspended    Name = "MarkSuspendedByUser"
	RequeueSuspended Name = "RequeueSuspendedByUser"
	Resume           Name = "Resume"
	MarkChanged      Name = "MarkChanged"
	MarkNotReleased  Name = "MarkNotReleased"
	RequeueChanged   Name = "RequeueChanged"
	AcceptChange     Name = "AcceptChange"
	MarkOverQuota    Name = "MarkOverQuota"
	ClearOverQuota   Name = "ClearOverQuota"
	MarkUnscheduled  Name = "MarkUnscheduled"
	ClearUnscheduled Name = "ClearUnscheduled"
	LeaveQueue       Name = "LeaveQueue"
	Collect          Name = "Collect"
	DeleteOrphan     Name = "DeleteOrphan"
)

// Move is one row of the table "Who moves a unit".
type Move struct {
	Name Name
	From From
	To   To
	By   Writer
	// When describes what else must be true.
	When string
}

// From is the state in which a move begins.
type From struct {
	// Phases are the phases that the unit can be in. If empty, there is no unit yet. An empty phase of a unit means
	// Enqueued.
	Phases []v1alpha1.QueueUnitPhase
	// Evictions are the states of eviction that the unit can be in. If empty, any.
	Evictions []Eviction
}

// To is the state in which a move ends. Fields that are not set remain unchanged.
type To struct {
	// Phases are the phases that the unit can be in afterwards.
	Phases []v1alpha1.QueueUnitPhase
	// Evicted is the status of the condition Evicted. Reasons are the reasons that the condition can have.
	Evicted metav1.ConditionStatus
	Reasons []wellknown.Reason
	// Reason is the reason in the status of the unit.
	Reason wellknown.Reason
	// Also describes what else is written.
	Also string
	// Gone means that the unit is deleted.
	Gone bool
}

func phases(list ...v1alpha1.QueueUnitPhase) []v1alpha1.QueueUnitPhase { return list }

// Moves returns all moves of a unit. No program makes a move that is not listed. The end of a
// job takes precedence over every other move.
func Moves() []Move {
	enqueued, backoff, reserved := v1alpha1.PhaseEnqueued, v1alpha1.PhaseBackoff, v1alpha1.PhaseReserved
	dequeued, running := v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning
	succeeded, failed := v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed
	waiting, holding := phases(enqueued, backoff), phases(reserved, dequeued, running)
	notAdmitted := phases(enqueued, backoff, reserved)
	live := slices.Concat(waiting, holding)
	all := slices.Concat(live, phases(succeeded, failed))
	asked := []Eviction{EvictionAsked, EvictionForGood}
	return []Move{
		{Create, From{}, To{Phases: phases(enqueued)}, Extensions,
			"a held job has no unit; or a released job runs and its unit is lost"},
		{Explain, From{Phases: waiting}, To{Phases: waiting, Also: "another reason"}, Controller, "the reason for waiting changed"},
		{MarkInvalid, From{Phases: notAdmitted}, To{Reason: wellknown.ReasonInvalidRequest}, Extensions,
			"the job is invalid; spec.active is already false"},
		{MarkValid, From{Phases: notAdmitted}, To{Also: "no reason"}, Extensions,
			"the job is valid again and stays inactive. The controller then writes why it waits"},
		{Reserve, From{Phases: waiting}, To{Phases: phases(reserved), Reason: wellknown.ReasonAdmissionCheckPending,
			Also: "`reservations` + 1; all checks Pending; `admittedPodSets` if not all pods fit"}, Controller, "the unit fits, and its queue has admission checks. Charged"},
		{ExplainCheck, From{Phases: phases(reserved)}, To{Phases: phases(reserved), Reason: wellknown.ReasonAdmissionCheckPending, Also: "another message"},
			Controller, "the message of a Pending check changed"},
		{DecideCheck, From{Phases: holding}, To{Also: "an entry of `admissionChecks`"}, Extensions,
			"the ProvisioningRequest for a check of job-extensions was created or changed. Other controllers write the entries of their own checks"},
		{ReturnReserved, From{Phases: phases(reserved), Evictions: []Eviction{EvictionNone}},
			To{Phases: waiting, Evicted: metav1.ConditionFalse, Reasons: []wellknown.Reason{wellknown.ReasonRequeued}, Also: "no checks"}, Controller,
			"a check is Retry, Rejected or late; or the unit is inactive, its queue is stopped, its quota is gone, its kind is not queued any more, or the checks of the queue changed. Uncharged"},
		{Dequeue, From{Phases: append(slices.Clone(waiting), reserved)}, To{Phases: phases(dequeued), Also: "`attempts` + 1; `admittedPodSets` if not all pods fit; PodsReady=False if the queue has a podsReadyTimeout"}, Controller,
			"the unit fits, and its queue has no admission checks or all are Ready; or the unit replaces a lost one and its job runs. Charged"},
		{ShowPlace, From{Phases: holding}, To{Also: "`quota`, `queue`"}, Controller,
			"the quota of the unit was renamed, or its namespace was moved to another quota"},
		{RequeueUnqueued, From{Phases: phases(dequeued)}, To{Phases: phases(enqueued), Evicted: metav1.ConditionFalse,
			Reason: wellknown.ReasonKindNotQueued, Reasons: []wellknown.Reason{wellknown.ReasonRequeued}}, Controller,
			"job-extensions does not queue the kind of the job any more, and the job has no pods 30 s after the admission. Uncharged"},
		{MarkRunning, From{Phases: phases(dequeued)}, To{Phases: phases(running), Also: "`startTime`; PodsReady=True if it is False and all pods are ready"}, Extensions,
			"the job has run for 2 s; or all its pods are ready and PodsReady is still False"},
		{MarkPodsReady, From{Phases: phases(dequeued, running), Evictions: []Eviction{EvictionNone}}, To{Also: "PodsReady=True"}, Extensions,
			"PodsReady is False, and all pods of the job are ready or have succeeded"},
		{LowerRequests, From{Phases: phases(dequeued, running), Evictions: []Eviction{EvictionNone}},
			To{Also: "lower spec.resource, spec.podSets"}, Extensions, "the spec of the released job requests less. Charged less"},
		{MarkRemains, From{Phases: holding}, To{Phases: phases(running), Reason: wellknown.ReasonPodsRemain, Also: "`startTime` if it never ran"}, Extensions,
			"the job ended 2 s ago and an object that owns its pods still exists; or the job is gone and its pods remain. Still charged"},
		{MarkFinished, From{Phases: live}, To{Phases: phases(succeeded, failed), Also: "`startTime` if it was admitted and never ran"}, Extensions,
			"the job ended and none of its objects remain; or the job is gone and a finalizer keeps the unit; or the job was deleted, a finalizer keeps it, and none of its pods remain. The controller then uncharges the unit"},
		{Expire, From{Phases: phases(dequeued, running)}, To{Phases: phases(failed), Also: "Finished=True with reason NotRenewed"}, Controller,
			"a unit created by hand was not renewed in time. Uncharged"},
		{Evict, From{Phases: holding, Evictions: []Eviction{EvictionNone}}, To{Evicted: metav1.ConditionTrue, Reasons: []wellknown.Reason{
			wellknown.ReasonDeactivated, wellknown.ReasonMaximumExecutionTime, wellknown.ReasonQueueStopped, wellknown.ReasonNotAdmitted,
			wellknown.ReasonPreempted, wellknown.ReasonReclaimed, wellknown.ReasonAdmissionCheckRetry, wellknown.ReasonAdmissionCheckRejected,
			wellknown.ReasonPodsReadyTimeout}}, Controller,
			"NotAdmitted: something other than the controller set the phase; Preempted: a unit with a higher priority in the same queue gets the quota; " +
				"Reclaimed: a unit of another group gets the quota that it is owed. Not from Reserved: Deactivated: spec.active is false; " +
				"MaximumExecutionTime: the job ran too long; QueueStopped: the queue is drained; " +
				"AdmissionCheckRetry, AdmissionCheckRejected: a check failed after the release; " +
				"PodsReadyTimeout: not all pods were ready in time. Still charged"},
		{Deactivate, From{Phases: holding, Evictions: []Eviction{EvictionForGood}}, To{Also: "spec.active false"}, Extensions,
			"the job is suspended and deactivated"},
		{MarkStopped, From{Phases: holding, Evictions: asked}, To{Evicted: metav1.ConditionTrue, Reasons: []wellknown.Reason{wellknown.ReasonStopped}},
			Extensions, "the job is suspended and its pods are gone. Still charged"},
		{Requeue, From{Phases: holding, Evictions: []Eviction{EvictionStopped}},
			To{Phases: waiting, Evicted: metav1.ConditionFalse, Reasons: []wellknown.Reason{wellknown.ReasonRequeued}}, Controller,
			"the unit waits again, with reason Inactive if spec.active is false, QueueStopped if its queue is stopped, and Backoff if its owner stopped it too often, a check failed, or its pods were not ready in time. Uncharged"},
		{MarkSuspended, From{Phases: holding, Evictions: append([]Eviction{EvictionNone}, asked...)},
			To{Evicted: metav1.ConditionTrue, Reasons: []wellknown.Reason{wellknown.ReasonSuspendedByUser}}, Extensions,
			"the job was suspended by hand and its pods are gone. Still charged"},
		{RequeueSuspended, From{Phases: holding, Evictions: []Eviction{EvictionByUser}},
			To{Phases: phases(enqueued), Evicted: metav1.ConditionTrue, Reason: wellknown.ReasonSuspendedByUser,
				Reasons: []wellknown.Reason{wellknown.ReasonSuspendedByUser}}, Controller, "the unit keeps the condition and is not tried. Uncharged"},
		{Resume, From{Phases: notAdmitted, Evictions: []Eviction{EvictionByUser}},
			To{Evicted: metav1.ConditionFalse, Reasons: []wellknown.Reason{wellknown.ReasonResumed}}, Extensions,
			"the job was unsuspended by hand and is queued again"},
		{MarkChanged, From{Phases: phases(reserved, dequeued), Evictions: []Eviction{EvictionNone}},
			To{Evicted: metav1.ConditionTrue, Reasons: []wellknown.Reason{wellknown.ReasonJobChanged}}, Extensions,
			"the job changed between its admission and its release, so it is not released. Still charged"},
		{MarkNotReleased, From{Phases: phases(dequeued), Evictions: []Eviction{EvictionNone}},
			To{Evicted: metav1.ConditionTrue, Reasons: []wellknown.Reason{wellknown.ReasonStopped}}, Extensions,
			"the API server has refused the release of the job for a minute. Still charged"},
		{RequeueChanged, From{Phases: holding, Evictions: []Eviction{EvictionChanged}},
			To{Phases: phases(enqueued), Evicted: metav1.ConditionTrue, Reason: wellknown.ReasonJobChanged,
				Reasons: []wellknown.Reason{wellknown.ReasonJobChanged}}, Controller, "the unit keeps the condition and is not tried. Uncharged"},
		{AcceptChange, From{Phases: waiting, Evictions: []Eviction{EvictionChanged}},
			To{Evicted: metav1.ConditionFalse, Reasons: []wellknown.Reason{wellknown.ReasonRequeued}}, Extensions,
			"the unit now has the request of the changed job and is queued again"},
		{MarkOverQuota, From{Phases: holding}, To{Also: "OverQuota=True"}, Controller,
			"the pods of the job request more than was admitted, and a limit of the quota has been exceeded for 10 s"},
		{ClearOverQuota, From{Phases: holding}, To{Also: "OverQuota=False"}, Controller, "either is no longer true"},
		{MarkUnscheduled, From{Phases: phases(dequeued, running)}, To{Also: "PodsScheduled=False"}, Controller,
			"for 5 s the scheduler has found no node for pods of the released job, or after 30 s its message differs; or the job has no pods"},
		{ClearUnscheduled, From{Phases: holding}, To{Also: "no PodsScheduled"}, Controller, "all pods have a node, or are gone"},
		{LeaveQueue, From{Phases: phases(enqueued, backoff, reserved, dequeued, running)}, To{Gone: true}, Extensions,
			"the job left the queue or is being deleted. From Dequeued only before its release; from Running only a group whose pods are gone while others wait, and units for growth"},
		{Collect, From{Phases: all}, To{Gone: true}, Collector, "the job is gone"},
		{DeleteOrphan, From{Phases: all}, To{Gone: true}, Extensions,
			"the job was deleted without its dependents; if the unit holds quota, none of the job's pods remain either"},
	}
}

// Begins reports whether the move can begin with the current state of the unit. Nil means that
// there is no unit.
func (m Move) Begins(unit *v1alpha1.QueueUnit) bool {
	if unit == nil || len(m.From.Phases) == 0 {
		return unit == nil && len(m.From.Phases) == 0
	}
	return slices.Contains(m.From.Phases, cmp.Or(unit.Status.Phase, v1alpha1.PhaseEnqueued)) &&
		(len(m.From.Evictions) == 0 || slices.Contains(m.From.Evictions, EvictionOf(unit)))
}
