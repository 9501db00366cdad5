package wellknown

// Condition types of a QueueUnit.
const (
	// ConditionPodsReady is true when all pods of the released job are ready.
	ConditionPodsReady = "PodsReady"
	// ConditionEvicted is true from the decision to take the unit's quota back
	// until it stands in line again.
	ConditionEvicted = "Evicted"
	// ConditionFinished is true once the job has ended.
	ConditionFinished = "Finished"
)

// Condition types that older releases wrote to a QueueUnit, beside a phase that says the
// same. They are removed where they are found, and must not be written.
const (
	ConditionQuotaReserved = "QuotaReserved"
	ConditionAdmitted      = "Admitted"
)

// ConditionValid of an ElasticQuotaTree reports whether the tree as it is written now is
// in force.
const ConditionValid = "Valid"
