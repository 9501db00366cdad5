package wellknown

// EventReason is the reason of an Event. That of an eviction is the eviction's Reason.
type EventReason string

// Events on a job, by job-extensions.
const (
	// EventQueued: the job waits. It is kept for as long as that is true.
	EventQueued EventReason = "Queued"
	// EventReleased: the job may run.
	EventReleased EventReason = "Released"
	// EventRequeued: a job suspended by hand was unsuspended by hand and waits.
	EventRequeued EventReason = "Requeued"
	// EventHeldAgain: a queued job was unsuspended by hand and is suspended again.
	EventHeldAgain EventReason = "HeldAgain"
	// EventHeldLate: a marked job was not suspended when it was created.
	EventHeldLate EventReason = "HeldLate"
	// EventLeftQueue: the job no longer asks to be queued.
	EventLeftQueue EventReason = "LeftQueue"
	// EventUnitRefused: the API server takes no unit for the job.
	EventUnitRefused EventReason = "QueueUnitRefused"
	// EventUnsized: nobody knows what the job asks for, and it is charged nothing.
	EventUnsized EventReason = "UnknownSize"
	// EventInvalidRequest: a key of a released job cannot be read.
	EventInvalidRequest = EventReason(ReasonInvalidRequest)
)

// Events on a unit or a quota tree, by kube-queue-controller.
const (
	// EventUnreadableUnit: the text of a unit is not what its type says.
	EventUnreadableUnit EventReason = "UnreadableUnit"
	// EventInvalidQuotaTree: the tree is invalid and not in force.
	EventInvalidQuotaTree = EventReason(ReasonInvalidQuotaTree)
	// EventIgnoredQuotaTree: the tree does not count, because another does.
	EventIgnoredQuotaTree EventReason = "IgnoredQuotaTree"
	// EventQuotaTreeWarning: the tree is in force and says something that is rarely
	// meant.
	EventQuotaTreeWarning EventReason = "QuotaTreeWarning"
)
