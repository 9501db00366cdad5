package wellknown

// EventReason is the reason of an Event. The event of an eviction has the Reason of the eviction.
type EventReason string

// Reasons of events that job-extensions reports on a job.
const (
	// EventQueued means that the job waits. The event is renewed as long as this is true.
	EventQueued EventReason = "Queued"
	// EventReleased means that the job was released.
	EventReleased EventReason = "Released"
	// EventNotAnnotated means that the job was released without annotations that an admission check
	// sets on its pods.
	EventNotAnnotated EventReason = "PodsNotAnnotated"
	// EventRequeued means that a job was suspended by hand, unsuspended by hand, and waits again.
	EventRequeued EventReason = "Requeued"
	// EventHeldAgain means that a queued job was unsuspended by hand and is suspended again.
	EventHeldAgain EventReason = "HeldAgain"
	// EventHeldLate means that a job with the mark was not suspended when it was created.
	EventHeldLate EventReason = "HeldLate"
	// EventLeftQueue means that the job no longer has the mark.
	EventLeftQueue EventReason = "LeftQueue"
	// EventUnitRefused means that the API server rejects the unit of the job.
	EventUnitRefused EventReason = "QueueUnitRefused"
	// EventUnsized means that the request of the job is unknown, so that nothing is charged for it.
	EventUnsized EventReason = "UnknownSize"
	// EventPodsLowered means that an evicted job has the number of pods again that was admitted, and not
	// the one to which its autoscaler has raised it.
	EventPodsLowered EventReason = "PodsLowered"
	// EventOverQuota means that the pods of the job request more than was admitted while a limit of
	// the quota is exceeded. On a quota tree it means that a limit is exceeded.
	EventOverQuota EventReason = "OverQuota"
	// EventMinCountIgnored means that a minimum number of pods has no effect, because all pods of the pod
	// set must start.
	EventMinCountIgnored EventReason = "MinCountIgnored"
	// EventKeyIgnored means that a label or annotation of a queued job has no effect, because its key is
	// misspelled, or because it is a label where an annotation is meant, or the other way round.
	EventKeyIgnored EventReason = "KeyIgnored"
	// EventNoRequests means that the pods of the job request nothing, so that nothing is charged for it.
	EventNoRequests EventReason = "NoRequests"
	// EventQuotaKept means that the job has ended and keeps its quota until somebody deletes what is left of it.
	EventQuotaKept EventReason = "QuotaKept"
	// EventUnitRestored means that the unit of a released job was lost, and that it was created again.
	EventUnitRestored EventReason = "UnitRestored"
	// EventReleaseRefused means that the API server refuses to unsuspend an admitted job, or to open the gate of a pod.
	EventReleaseRefused EventReason = "ReleaseRefused"
	// EventSuspendRefused means that the API server refuses to suspend a job.
	EventSuspendRefused EventReason = "SuspendRefused"
	// EventControllerDown means that kube-queue-controller does not run, so that no job is admitted. The
	// event is renewed as long as this is true.
	EventControllerDown EventReason = "ControllerDown"
	// EventKindNotQueued means that a job has the mark, but that job-extensions does not queue its kind. The
	// event is renewed as long as this is true.
	EventKindNotQueued EventReason = "KindNotQueued"
	// EventKueueMissing means that the job has the label of Kueue, which is not installed. The event is
	// renewed as long as this is true.
	EventKueueMissing EventReason = "KueueNotInstalled"
	// EventNotQueued means that a job with the mark is not queued: it ran already when it was first seen,
	// or something else in the job takes it out of the queue.
	EventNotQueued EventReason = "NotQueued"
	// EventProvisioningPending means that the autoscaler has not provisioned the ProvisioningRequest of
	// the job yet, for example because its own quota is insufficient.
	EventProvisioningPending EventReason = "ProvisioningPending"
	// EventProvisioningFailed means that the ProvisioningRequest of the job has failed.
	EventProvisioningFailed EventReason = "ProvisioningFailed"
	// EventInvalidRequest means that an annotation or label of a released job is invalid.
	EventInvalidRequest = EventReason(ReasonInvalidRequest)
)

// Reasons of events that kube-queue-controller reports on a unit, a Queue or a quota tree.
const (
	// EventIgnoredQueue means that the Queue is not in the namespace of kube-queue, so that it has no
	// effect.
	EventIgnoredQueue EventReason = "IgnoredQueue"
	// EventSettingsMoved means that the settings of another Queue were moved to this one, because its quota was
	// renamed.
	EventSettingsMoved EventReason = "SettingsMoved"
	// EventSettingsUnused means that the settings of the Queue have no effect, because its quota does not exist any
	// more.
	EventSettingsUnused EventReason = "SettingsUnused"
	// EventUnreadableUnit means that a unit cannot be decoded into its type.
	EventUnreadableUnit EventReason = "UnreadableUnit"
	// EventNotRenewed means that a unit that was created by hand has lost its quota, because it was not renewed
	// in time.
	EventNotRenewed = EventReason(ReasonNotRenewed)
	// EventNotAdmitted means that somebody other than the controller wrote that a unit holds quota.
	EventNotAdmitted = EventReason(ReasonNotAdmitted)
	// EventStatusDenied means that the API server does not accept the status of a unit, because of a policy or a
	// role, so that nothing is decided about the job.
	EventStatusDenied EventReason = "StatusDenied"
	// EventInvalidQuotaTree means that the tree is invalid. The last valid tree stays in force if one is
	// known.
	EventInvalidQuotaTree = EventReason(ReasonInvalidQuotaTree)
	// EventIgnoredQuotaTree means that the tree is not used because another one is.
	EventIgnoredQuotaTree EventReason = "IgnoredQuotaTree"
	// EventQuotaTreeWarning means that the tree is in force and contains something that is rarely
	// intended.
	EventQuotaTreeWarning EventReason = "QuotaTreeWarning"
	// EventQuotaTreeNotKept means that the tree in force cannot be kept for a restart of the controller.
	EventQuotaTreeNotKept EventReason = "QuotaTreeNotKept"
)
