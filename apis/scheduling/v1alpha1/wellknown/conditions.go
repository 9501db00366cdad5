package wellknown

// Condition types of a QueueUnit.
const (
	// ConditionQuotaReserved is true while the unit holds quota.
	ConditionQuotaReserved = "QuotaReserved"
	// ConditionAdmitted is true from the unit's release until it ends or is evicted.
	ConditionAdmitted = "Admitted"
	// ConditionPodsReady is true when all pods of the released job are ready.
	ConditionPodsReady = "PodsReady"
	// ConditionEvicted is true from the decision to take the unit's quota back
	// until it stands in line again.
	ConditionEvicted = "Evicted"
	// ConditionFinished is true once the job has ended.
	ConditionFinished = "Finished"
)

// ConditionValid of an ElasticQuotaTree tells whether the tree as it is written now is
// in force.
const ConditionValid = "Valid"
