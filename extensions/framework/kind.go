package framework

// Setting is a field that a hold sets along with the suspend field, where the job
// leaves it unset.
type Setting struct {
	// Path of the field, such as spec.runPolicy.cleanPodPolicy.
	Path []string
	// Value is a string or a bool. The field is unset where it has the zero value.
	Value any
	// OlderPath is another place of the same field. It counts where Path is absent.
	OlderPath []string
	// Annotation notes with value "false" that the job did not ask for this, so
	// that the release can put it back. It is for a bool; empty for none.
	Annotation string
	// Why the field is set: a sentence for who reads the hold policy.
	Why string
}

// Condition is a CEL expression over object, the job. It reads fields by optional
// chaining only, for an expression that fails on some job refuses it.
type Condition struct {
	Name       string
	Expression string
}

// Doc is what the tables of the documentation say of a kind. Texts are Markdown.
type Doc struct {
	// Needs is what the kind takes, such as "operator 2.4 or later"; it may be empty.
	Needs string
	// Mark is what a job must have beside the suspend field to be marked by it; empty
	// for nothing.
	Mark string
	// Shows is what the job's own status shows while it waits.
	Shows string
	// Counts is what of the job is charged to the quota.
	Counts string
	// Frees is when the quota of the job is free.
	Frees string
	// Stops is how one sees that a job that was suspended by hand has stopped.
	Stops string
}
