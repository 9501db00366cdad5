package v1alpha1

// QueueUnitPhase is a step in a unit's life. An absent phase reads as Enqueued.
//
// +kubebuilder:validation:Enum=Enqueued;Reserved;Dequeued;Running;Succeeded;Failed;Backoff
type QueueUnitPhase string

const (
	// PhaseEnqueued: the unit waits for quota.
	PhaseEnqueued QueueUnitPhase = "Enqueued"
	// PhaseReserved: the unit holds quota and waits for its admission checks.
	PhaseReserved QueueUnitPhase = "Reserved"
	// PhaseDequeued: the unit holds quota and its job is, or is to be, released.
	PhaseDequeued QueueUnitPhase = "Dequeued"
	// PhaseRunning: the released job runs; quota is held.
	PhaseRunning QueueUnitPhase = "Running"
	// PhaseSucceeded: the job has ended well; the quota is free.
	PhaseSucceeded QueueUnitPhase = "Succeeded"
	// PhaseFailed: the job has ended badly; the quota is free.
	PhaseFailed QueueUnitPhase = "Failed"
	// PhaseBackoff: the unit had quota, gave it back, and waits a while before
	// it stands in line again.
	PhaseBackoff QueueUnitPhase = "Backoff"
)

// HoldsQuota reports whether a unit in this phase is charged to its quota.
func (p QueueUnitPhase) HoldsQuota() bool {
	return p == PhaseReserved || p == PhaseDequeued || p == PhaseRunning
}

// Ended reports whether a unit in this phase has come to its end.
func (p QueueUnitPhase) Ended() bool {
	return p == PhaseSucceeded || p == PhaseFailed
}

// Waits reports whether a unit in this phase waits for quota.
func (p QueueUnitPhase) Waits() bool {
	return p == "" || p == PhaseEnqueued || p == PhaseBackoff
}
