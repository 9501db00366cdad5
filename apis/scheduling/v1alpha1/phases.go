package v1alpha1

// QueueUnitPhase is the phase of a unit. An empty phase means Enqueued.
//
// +kubebuilder:validation:Enum=Enqueued;Reserved;Dequeued;Running;Succeeded;Failed;Backoff
type QueueUnitPhase string

const (
	// PhaseEnqueued means that the unit waits for quota.
	PhaseEnqueued QueueUnitPhase = "Enqueued"
	// PhaseReserved means that the unit holds quota and waits for its admission checks.
	PhaseReserved QueueUnitPhase = "Reserved"
	// PhaseDequeued means that the unit holds quota and its job is released or about to be.
	PhaseDequeued QueueUnitPhase = "Dequeued"
	// PhaseRunning means that the unit holds quota and its job runs.
	PhaseRunning QueueUnitPhase = "Running"
	// PhaseSucceeded means that the job succeeded and its quota is free.
	PhaseSucceeded QueueUnitPhase = "Succeeded"
	// PhaseFailed means that the job failed and its quota is free.
	PhaseFailed QueueUnitPhase = "Failed"
	// PhaseBackoff means that the unit gave its quota back and waits before it is queued again.
	PhaseBackoff QueueUnitPhase = "Backoff"
)

// HoldsQuota reports whether a unit in this phase is charged to its quota.
func (p QueueUnitPhase) HoldsQuota() bool {
	return p == PhaseReserved || p == PhaseDequeued || p == PhaseRunning
}

// Ended reports whether the job of a unit in this phase has ended.
func (p QueueUnitPhase) Ended() bool {
	return p == PhaseSucceeded || p == PhaseFailed
}

// Waits reports whether a unit in this phase waits for quota.
func (p QueueUnitPhase) Waits() bool {
	return p == "" || p == PhaseEnqueued || p == PhaseBackoff
}
