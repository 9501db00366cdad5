package lifecycle

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Writer is who makes a move: one of the programs, or the cluster.
type Writer string

// The writers. The programs' names are those of their ServiceAccounts too.
const (
	Controller Writer = "kube-queue-controller"
	Extensions Writer = "job-extensions"
	// Collector is the cluster's garbage collection.
	Collector Writer = "garbage collection"
)

// Name of a move. Those of job-extensions are named as its decisions are.
type Name string

// The moves.
const (
	Create           Name = "CreateUnit"
	Explain          Name = "Explain"
	MarkInvalid      Name = "MarkInvalid"
	Dequeue          Name = "Dequeue"
	MarkRunning      Name = "MarkRunning"
	MarkRemains      Name = "MarkRemains"
	MarkFinished     Name = "MarkFinished"
	Evict            Name = "Evict"
	Deactivate       Name = "Deactivate"
	MarkStopped      Name = "MarkStopped"
	Requeue          Name = "Requeue"
	MarkSuspended    Name = "MarkSuspendedByUser"
	RequeueSuspended Name = "RequeueSuspendedByUser"
	Resume           Name = "Resume"
	LeaveQueue       Name = "LeaveQueue"
	Collect          Name = "Collect"
	DeleteOrphan     Name = "DeleteOrphan"
)

// Move is one line of the table of who moves a unit.
type Move struct {
	Name Name
	From From
	To   To
	By   Writer
	// When says in words what else must be true.
	When string
}

// From is where a move begins.
type From struct {
	// Phases that the unit may be in; none: there is no unit yet. An absent phase is
	// Enqueued.
	Phases []v1alpha1.QueueUnitPhase
	// Evictions of which one must be so; none: it does not matter.
	Evictions []Eviction
}

// To is where a move ends. What is not set stays as it was.
type To struct {
	// Phases of which the unit is in one.
	Phases []v1alpha1.QueueUnitPhase
	// Evicted is the status of the condition, Reasons those that it may have.
	Evicted metav1.ConditionStatus
	Reasons []wellknown.Reason
	// Reason of the unit's status.
	Reason wellknown.Reason
	// Also says in words what else is written.
	Also string
	// Gone: the unit is deleted.
	Gone bool
}

// phases is a list of them.
func phases(list ...v1alpha1.QueueUnitPhase) []v1alpha1.QueueUnitPhase { return list }

// Moves are all moves that there are: what does not stand here does not happen. Phases
// Reserved and Backoff are honoured where they are found, but no move leads there yet.
// An end beats everything else.
func Moves() []Move {
	enqueued, backoff, reserved := v1alpha1.PhaseEnqueued, v1alpha1.PhaseBackoff, v1alpha1.PhaseReserved
	dequeued, running := v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning
	succeeded, failed := v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed
	waiting, holding := phases(enqueued, backoff), phases(reserved, dequeued, running)
	inLine := phases(enqueued, backoff, reserved)
	live := slices.Concat(waiting, holding)
	all := slices.Concat(live, phases(succeeded, failed))
	asked := []Eviction{EvictionAsked, EvictionForGood}
	return []Move{
		{Create, From{}, To{Phases: phases(enqueued)}, Extensions, "a held job is seen"},
		{Explain, From{Phases: waiting}, To{Phases: waiting, Also: "another reason"}, Controller, "the cause of waiting has changed"},
		{MarkInvalid, From{Phases: inLine}, To{Reason: wellknown.ReasonInvalidRequest}, Extensions,
			"something in the job is wrong; spec.active is false before that"},
		{Dequeue, From{Phases: waiting}, To{Phases: phases(dequeued), Also: "`attempts` + 1"}, Controller, "it fits: charged"},
		{MarkRunning, From{Phases: phases(dequeued)}, To{Phases: phases(running)}, Extensions, "the job has run for 2 s"},
		{MarkRemains, From{Phases: holding}, To{Phases: phases(running), Reason: wellknown.ReasonPodsRemain}, Extensions,
			"the job has ended for 2 s, and an object that has pods of it is still there. Still charged"},
		{MarkFinished, From{Phases: live}, To{Phases: phases(succeeded, failed)}, Extensions,
			"the job has ended and nothing of it remains; the controller uncharges it when it sees that"},
		{Evict, From{Phases: holding, Evictions: []Eviction{EvictionNone}}, To{Evicted: metav1.ConditionTrue, Reasons: []wellknown.Reason{
			wellknown.ReasonDeactivated, wellknown.ReasonMaximumExecutionTime, wellknown.ReasonQueueStopped}}, Controller,
			"Deactivated: spec.active is false; MaximumExecutionTime: it has run for too long (not Reserved); QueueStopped: its queue is drained. Still charged"},
		{Deactivate, From{Phases: holding, Evictions: []Eviction{EvictionForGood}}, To{Also: "spec.active false"}, Extensions,
			"the job is suspended and deactivated"},
		{MarkStopped, From{Phases: holding, Evictions: asked}, To{Evicted: metav1.ConditionTrue, Reasons: []wellknown.Reason{wellknown.ReasonStopped}},
			Extensions, "the job is suspended and its pods are gone. Still charged"},
		{Requeue, From{Phases: holding, Evictions: []Eviction{EvictionStopped}},
			To{Phases: phases(enqueued), Evicted: metav1.ConditionFalse, Reasons: []wellknown.Reason{wellknown.ReasonRequeued}}, Controller,
			"uncharged; the unit waits, with reason Inactive where spec.active is false, QueueStopped where its queue is stopped"},
		{MarkSuspended, From{Phases: holding, Evictions: append([]Eviction{EvictionNone}, asked...)},
			To{Evicted: metav1.ConditionTrue, Reasons: []wellknown.Reason{wellknown.ReasonSuspendedByUser}}, Extensions,
			"the job was suspended by hand and its pods are gone. Still charged"},
		{RequeueSuspended, From{Phases: holding, Evictions: []Eviction{EvictionByUser}},
			To{Phases: phases(enqueued), Evicted: metav1.ConditionTrue, Reason: wellknown.ReasonSuspendedByUser,
				Reasons: []wellknown.Reason{wellknown.ReasonSuspendedByUser}}, Controller, "uncharged; it keeps the condition and is not tried"},
		{Resume, From{Phases: inLine, Evictions: []Eviction{EvictionByUser}},
			To{Evicted: metav1.ConditionFalse, Reasons: []wellknown.Reason{wellknown.ReasonResumed}}, Extensions,
			"the job was unsuspended by hand: it stands in line again"},
		{LeaveQueue, From{Phases: phases(enqueued, backoff, reserved, dequeued)}, To{Gone: true}, Extensions,
			"the job left the queue; Dequeued: it was given to another queue before its release"},
		{Collect, From{Phases: all}, To{Gone: true}, Collector, "the job is gone"},
		{DeleteOrphan, From{Phases: all}, To{Gone: true}, Extensions,
			"the job is gone and was deleted without its dependents"},
	}
}

// MoveOf finds a move by its name.
func MoveOf(name Name) (Move, bool) {
	for _, m := range Moves() {
		if m.Name == name {
			return m, true
		}
	}
	return Move{}, false
}

// Begins reports whether the move can begin with the unit as it is; nil is no unit.
func (m Move) Begins(unit *v1alpha1.QueueUnit) bool {
	if unit == nil || len(m.From.Phases) == 0 {
		return unit == nil && len(m.From.Phases) == 0
	}
	phase := unit.Status.Phase
	if phase == "" {
		phase = v1alpha1.PhaseEnqueued
	}
	return slices.Contains(m.From.Phases, phase) &&
		(len(m.From.Evictions) == 0 || slices.Contains(m.From.Evictions, EvictionOf(unit)))
}
