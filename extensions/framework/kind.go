package framework

// Setting is a field that a hold sets together with the suspend field if the job
// leaves it unset.
type Setting struct {
	// Path of the field, such as spec.runPolicy.cleanPodPolicy.
	Path []string
	// Value is a string or a bool. A field with the zero value counts as unset.
	Value any
	// OlderPath is another place of the same field. It is used if Path is absent.
	OlderPath []string
	// Annotation, with value "false", records that the job did not set the field, so
	// that the release can restore it. For a bool only; empty for none.
	Annotation string
	// Why the field is set: a sentence for readers of the hold policy.
	Why string
}

// Condition is a CEL expression over object, the job. It reads fields by optional
// chaining only, because an expression that fails on a job rejects the job.
type Condition struct {
	Name       string
	Expression string
}

// Doc has the texts of the kind for the tables of the documentation, in Markdown.
type Doc struct {
	// Needs is a requirement, such as "operator 2.4 or later"; it may be empty.
	Needs string
	// Mark is what a job must contain in addition to the suspend field to be marked by
	// it; empty for nothing.
	Mark string
	// Shows is what the job's own status shows while the job waits.
	Shows string
	// Counts lists the pods of the job that are charged to the quota.
	Counts string
	// Frees is the event that frees the quota of the job.
	Frees string
	// Stops is the sign that a job has stopped after it was suspended by hand.
	Stops string
}
