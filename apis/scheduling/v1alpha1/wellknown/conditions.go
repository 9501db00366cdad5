package wellknown

// Condition types of a QueueUnit.
const (
	// ConditionPodsReady is false from the admission of a unit whose queue has a podsReadyTimeout,
	// and true once all pods of the job were ready. Other units do not have it.
	ConditionPodsReady = "PodsReady"
	// ConditionEvicted is true from the decision to evict the unit until the unit is queued
	// again.
	ConditionEvicted = "Evicted"
	// ConditionFinished is true once the job has ended.
	ConditionFinished = "Finished"
	// ConditionOverQuota is true while a limit of the quota is exceeded and the pods of the job
	// request more of the resource than was admitted. Of an ElasticQuotaTree it is true while a
	// limit of any node is exceeded. In both cases only after 10 seconds.
	ConditionOverQuota = "OverQuota"
	// ConditionPodsScheduled is false while the scheduler finds no node for pods of a released job. A unit of
	// whose pods this is not so does not have the condition.
	ConditionPodsScheduled = "PodsScheduled"
	// ConditionRejected is true while an admission check rejects the spec of the unit with the
	// observed generation. The unit is not tried until its spec changes.
	ConditionRejected = "Rejected"
)

// Condition types that older releases wrote to a QueueUnit, in addition to a phase that means
// the same. The programs remove them and must not write them.
const (
	ConditionQuotaReserved = "QuotaReserved"
	ConditionAdmitted      = "Admitted"
)

// ConditionValid of an ElasticQuotaTree reports whether the current spec of the tree is in force.
const ConditionValid = "Valid"
