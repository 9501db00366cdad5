package wellknown

// Reason is one word for why a unit waits, is evicted or has ended: in status.reason
// of a unit and in its conditions.
type Reason string

// Reasons of waiting that a quota backend gives.
const (
	// ReasonNoQuota: no group has the unit's namespace.
	ReasonNoQuota Reason = "NoQuota"
	// ReasonInvalidQuotaTree: there is no quota to decide by, because none that
	// was given is valid. Also the reason of condition Valid of a tree that is not.
	ReasonInvalidQuotaTree Reason = "InvalidQuotaTree"
	// ReasonQuotaNotAllowed: the unit names a quota that its namespace may not use.
	ReasonQuotaNotAllowed Reason = "QuotaNotAllowed"
	// ReasonQuotaExceeded: there is no room now.
	ReasonQuotaExceeded Reason = "QuotaExceeded"
	// ReasonMaxJobs: the number of units that hold quota is at its limit.
	ReasonMaxJobs Reason = "MaxJobs"
	// ReasonBorrowingPaused: there is room, and it is kept for a group that has lent
	// what it is guaranteed.
	ReasonBorrowingPaused Reason = "BorrowingPaused"
	// ReasonExceedsMaxQuota: the unit asks for more than the whole quota.
	ReasonExceedsMaxQuota Reason = "ExceedsMaxQuota"
	// ReasonExceedsMinQuota: the unit is not preemptible and asks for more than its
	// group is guaranteed.
	ReasonExceedsMinQuota Reason = "ExceedsMinQuota"
	// ReasonInvalidRequest: the unit or its job asks for something that no quota can be
	// compared with, or that cannot be, until its owner corrects it.
	ReasonInvalidRequest Reason = "InvalidRequest"
)

// Reasons of waiting that no backend gives.
const (
	// ReasonNotAtFront: the queue's policy is Block and another unit is in front.
	ReasonNotAtFront Reason = "NotAtFront"
	// ReasonBackoff: the unit gave its quota back and stands in line again later.
	ReasonBackoff Reason = "Backoff"
	// ReasonInactive: the unit's spec says that it must not run.
	ReasonInactive Reason = "Inactive"
	// ReasonQueueStopped: an administrator has stopped the queue. Of an eviction: the
	// queue was drained, and the unit waits in its old place until the queue goes on.
	ReasonQueueStopped Reason = "QueueStopped"
	// ReasonSuspendedByUser: a person suspended the released job by hand. Of condition
	// Evicted it says that the job has stopped, too.
	ReasonSuspendedByUser Reason = "SuspendedByUser"
)

// ReasonPodsRemain of a running unit: its job has ended, and something that has
// pods remains of it and keeps the quota.
const ReasonPodsRemain Reason = "PodsRemain"

// Reasons of evictions, beside QueueStopped.
const (
	// ReasonDeactivated: spec.active of a unit that holds quota is false.
	ReasonDeactivated Reason = "Deactivated"
	// ReasonMaximumExecutionTime: the job has run for longer than its unit's
	// maximumExecutionTimeSeconds. It is deactivated too: without that it would run
	// again, and again for too long.
	ReasonMaximumExecutionTime Reason = "MaximumExecutionTime"
)

// Reasons of condition Evicted that say how far the eviction has come.
const (
	// ReasonStopped: the job was suspended to end an eviction; its pods are gone and its
	// quota may be given back.
	ReasonStopped Reason = "Stopped"
	// ReasonRequeued, of status False: the unit gave its quota back and stands in line.
	ReasonRequeued Reason = "Requeued"
	// ReasonResumed, of status False: a job suspended by hand was unsuspended by hand
	// and stands in line again.
	ReasonResumed Reason = "Resumed"
)

// Reasons of condition Finished of a job that gives none itself.
const (
	ReasonJobSucceeded Reason = "JobSucceeded"
	ReasonJobFailed    Reason = "JobFailed"
)

// ReasonInForce of condition Valid of a quota tree: it is what is decided by.
const ReasonInForce Reason = "InForce"

// NeedsAction reports whether waiting for this reason does not end until somebody
// changes the job or the quota: the event that reports it is a Warning.
func (r Reason) NeedsAction() bool {
	switch r {
	case ReasonNoQuota, ReasonQuotaNotAllowed, ReasonInvalidQuotaTree, ReasonExceedsMaxQuota, ReasonExceedsMinQuota,
		ReasonInvalidRequest:
		return true
	}
	return false
}
