package wellknown

// Reason is a machine-readable word for why a unit waits, is evicted or has ended. It is in
// status.reason of a unit and in its conditions.
type Reason string

// Reasons for waiting that a quota backend reports.
const (
	// ReasonNoQuota means that no quota group lists the namespace of the unit.
	ReasonNoQuota Reason = "NoQuota"
	// ReasonInvalidQuotaTree means that no quota is in force because the tree is invalid. It is
	// also the reason of the condition Valid of an invalid tree.
	ReasonInvalidQuotaTree Reason = "InvalidQuotaTree"
	// ReasonQuotaNotAllowed means that the unit names a quota that its namespace may not use.
	ReasonQuotaNotAllowed Reason = "QuotaNotAllowed"
	// ReasonQuotaExceeded means that the quota is insufficient now.
	ReasonQuotaExceeded Reason = "QuotaExceeded"
	// ReasonMaxJobs means that the number of units that hold quota is at its limit.
	ReasonMaxJobs Reason = "MaxJobs"
	// ReasonBorrowingPaused means that the free quota is retained for a group that has lent its
	// guarantee.
	ReasonBorrowingPaused Reason = "BorrowingPaused"
	// ReasonExceedsMaxQuota means that the unit requests more than the complete quota.
	ReasonExceedsMaxQuota Reason = "ExceedsMaxQuota"
	// ReasonExceedsMinQuota means that the unit is not preemptible and requests more than the
	// guarantee of its group.
	ReasonExceedsMinQuota Reason = "ExceedsMinQuota"
	// ReasonInvalidRequest means that the request of the unit or its job is invalid until its
	// owner corrects it.
	ReasonInvalidRequest Reason = "InvalidRequest"
)

// Reasons for waiting that do not come from a quota backend.
const (
	// ReasonNotAtFront means that the policy of the queue is Block and another unit is in front.
	ReasonNotAtFront Reason = "NotAtFront"
	// ReasonBackoff means that the unit gave its quota back too often in a short time because of its
	// owner, and is queued again later.
	ReasonBackoff Reason = "Backoff"
	// ReasonInactive means that spec.active of the unit is false.
	ReasonInactive Reason = "Inactive"
	// ReasonQueueStopped means that an administrator has stopped the queue. As the reason of an
	// eviction, it means that the queue was drained; the unit keeps its place until the queue is
	// resumed.
	ReasonQueueStopped Reason = "QueueStopped"
	// ReasonSuspendedByUser means that a person suspended the released job by hand. As the reason
	// of the condition Evicted, it means that the job has stopped, too.
	ReasonSuspendedByUser Reason = "SuspendedByUser"
	// ReasonJobChanged means that the job changed between its admission and its release, so that
	// it was not released. It is also the reason of the condition Evicted until the unit has the
	// request of the changed job.
	ReasonJobChanged Reason = "JobChanged"
	// ReasonPreempting means that other units are being evicted so that the unit can start.
	ReasonPreempting Reason = "Preempting"
	// ReasonKindNotQueued means that job-extensions does not queue the kind of the job, so that nothing would
	// release it.
	ReasonKindNotQueued Reason = "KindNotQueued"
	// ReasonTerminating means that the unit is being deleted and that a finalizer keeps it.
	ReasonTerminating Reason = "Terminating"
)

// ReasonWaitingForPods means that the queue admits no unit until the pods of another one are ready.
const ReasonWaitingForPods Reason = "WaitingForPods"

// ReasonPodsReadyTimeout of an eviction means that not all pods of the job were ready in time.
const ReasonPodsReadyTimeout Reason = "PodsReadyTimeout"

// Reasons of the condition PodsReady.
const (
	// ReasonPodsNotReady, with status False, means that not all pods of the job were ready yet.
	ReasonPodsNotReady Reason = "PodsNotReady"
	// ReasonPodsReady, with status True, means that all pods of the job were ready.
	ReasonPodsReady Reason = "PodsReady"
)

// Reasons of admission checks.
const (
	// ReasonAdmissionCheckPending of a Reserved unit means that an admission check is not decided.
	ReasonAdmissionCheckPending Reason = "AdmissionCheckPending"
	// ReasonAdmissionCheckMissing means that the queue lists an AdmissionCheck that does not exist.
	ReasonAdmissionCheckMissing Reason = "AdmissionCheckMissing"
	// ReasonAdmissionCheckRetry means that an admission check failed for now, so that the unit gives its
	// quota back and is queued again later.
	ReasonAdmissionCheckRetry Reason = "AdmissionCheckRetry"
	// ReasonAdmissionCheckRejected means that an admission check rejected the unit, so that it is not
	// tried until its spec changes. It is also the reason of the condition Rejected.
	ReasonAdmissionCheckRejected Reason = "AdmissionCheckRejected"
)

// ReasonPodsRemain of a running unit means that its job has ended or is gone, and that a pod of the
// job, or an object that has pods, still exists and keeps the quota.
const ReasonPodsRemain Reason = "PodsRemain"

// ReasonPodsUnschedulable is the reason of the condition PodsScheduled.
const ReasonPodsUnschedulable Reason = "PodsUnschedulable"

// Reasons of the condition OverQuota.
const (
	// ReasonLimitExceeded, with status True, means that a limit is exceeded.
	ReasonLimitExceeded Reason = "LimitExceeded"
	// ReasonWithinLimits, with status False, means that this is over.
	ReasonWithinLimits Reason = "WithinLimits"
)

// Reasons of evictions, in addition to ReasonQueueStopped.
const (
	// ReasonDeactivated means that spec.active of a unit that holds quota is false.
	ReasonDeactivated Reason = "Deactivated"
	// ReasonMaximumExecutionTime means that the job has run for longer than
	// maximumExecutionTimeSeconds of its unit. The job is deactivated as well, because otherwise
	// it would be released again and would exceed its time again.
	ReasonMaximumExecutionTime Reason = "MaximumExecutionTime"
	// ReasonPreempted means that a unit of a greater priority in the same queue gets the room.
	ReasonPreempted Reason = "Preempted"
	// ReasonReclaimed means that a unit of another quota gets the room, which is guaranteed to that
	// quota and was borrowed.
	ReasonReclaimed Reason = "Reclaimed"
	// ReasonNotAdmitted means that the phase says that the unit holds quota, but that somebody other
	// than kube-queue-controller wrote it.
	ReasonNotAdmitted Reason = "NotAdmitted"
)

// Reasons of the condition Evicted for the progress of an eviction.
const (
	// ReasonStopped means that the job of an evicted unit is suspended and its pods are gone, so
	// that its quota can be freed.
	ReasonStopped Reason = "Stopped"
	// ReasonRequeued, with status False, means that the unit gave its quota back and is queued.
	ReasonRequeued Reason = "Requeued"
	// ReasonResumed, with status False, means that a job was suspended by hand, unsuspended by
	// hand, and is queued again.
	ReasonResumed Reason = "Resumed"
)

// Reasons of the condition Finished of a job that reports no reason itself, or of a unit that has no job.
const (
	// ReasonNotRenewed means that a unit that was created by hand was not renewed in time.
	ReasonNotRenewed   Reason = "NotRenewed"
	ReasonJobSucceeded Reason = "JobSucceeded"
	ReasonJobFailed    Reason = "JobFailed"
	// ReasonJobDeleted means that the job was deleted while a finalizer keeps its unit.
	ReasonJobDeleted Reason = "JobDeleted"
)

// ReasonInForce of the condition Valid means that decisions follow the quota tree.
const ReasonInForce Reason = "InForce"

// NeedsAction reports whether a unit with this reason waits until somebody changes the job or the
// quota. The event that reports such a reason is a Warning.
func (r Reason) NeedsAction() bool {
	switch r {
	case ReasonNoQuota, ReasonQuotaNotAllowed, ReasonInvalidQuotaTree, ReasonExceedsMaxQuota, ReasonExceedsMinQuota,
		ReasonInvalidRequest, ReasonKindNotQueued, ReasonTerminating, ReasonAdmissionCheckMissing, ReasonAdmissionCheckRejected:
		return true
	}
	return false
}

// WaitsForQuota reports whether a unit with this reason waits only for quota, so that its start can be
// estimated.
func (r Reason) WaitsForQuota() bool {
	switch r {
	case ReasonQuotaExceeded, ReasonMaxJobs, ReasonBorrowingPaused, ReasonNotAtFront, ReasonPreempting, ReasonBackoff:
		return true
	}
	return false
}
