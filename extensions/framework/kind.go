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
	// Annotation, with value "false", records that the job did not set the field, so that the release can unset it
	// again. For a bool only; empty for none.
	Annotation string
	// Why the field is set: a sentence for readers of the hold policy.
	Why string
}

// Condition is a CEL expression over the job. It reads fields by optional
// chaining only, because an expression that fails on a job rejects the job.
type Condition struct {
	Name       string
	Expression string
}

// Fence describes the fields of a released job that decide how many pods it runs and what they request. In a managed
// namespace, they can only stay or shrink. The texts are CEL expressions that read fields by optional chaining only.
type Fence struct {
	// Declared: an annotation states the size, so no field decides it.
	Declared bool
	// Frozen are the paths of fields that must not change. With EmptyIsUnset, an empty string counts as unset, because
	// the operator omits it when it writes the job. The field managedBy of Kind.ManagedBy is always frozen.
	Frozen       [][]string
	EmptyIsUnset bool
	// Valid are conditions over job that must stay true, because the operator does not suspend a job that breaks one.
	// Each is named after the fields that it checks.
	Valid []Condition
	// Size is an expression over job for the number of pods, which must not grow; empty if Groups contain all pods.
	Size string
	// Groups are the groups of pods of the job.
	Groups []Groups
	// Scale is the path of the number that the subresource scale sets; nil for none.
	Scale []string
	// Ended is how the status reports that the job has ended.
	Ended Ended
}

// Groups is a list or a map of groups of equal pods. No group can be added to a released job.
type Groups struct {
	Path []string
	// Key is the field that identifies a group of a list; empty for a map.
	Key string
	// Sizes are the fields that decide the number of pods of a group. No other field of a group can change.
	Sizes []string
	// Size is the number of pods, as an expression over group.
	Size string
	// Elastic is the condition over job under which an operator or autoscaler changes the sizes; it must depend on
	// Frozen fields only. Most is an expression over job and group for the largest size then. Empty: sizes never grow.
	Elastic, Most string
}

// Ended describes the end of a job: one of the condition types is true, or the field has
// one of the values.
type Ended struct {
	Conditions []string
	Path       []string
	Values     []string
	// Label must be "true" as well, because the operator goes on until it is; empty for none.
	Label string
}

// Place is where jobs of a kind contain the annotations of their pods. The release changes annotations there, but not
// the templates around them, while the job is suspended and has no pods.
type Place struct {
	// PodSet is the pod set whose annotations are at Path. If it is empty, Path is a map or a list with an element for
	// each pod set.
	PodSet string
	Path   []string
	// Key is the field that names the elements of a list; empty for a map.
	Key string
	// Names returns the names of the pod sets for the names of elements. If it is nil, they are the same.
	Names func(elements []string) []string
	// Below is the path of the annotations in an element.
	Below []string
	// Manager, if not empty, is the key of the list element that belongs to kube-queue. The element patches templates
	// that are not in the job. Own is the place in that element; its elements are created as needed.
	Manager string
	Own     *Place
	// Time is the field that contains the time when the element was set; empty if there is none. If it is not set, the
	// operator's webhook sets it and rewrites the whole job, which can change how quantities are written. The operator
	// then rejects the release, because immutable fields seem to have changed.
	Time string
	// Unless is a field that makes the operator ignore the annotations. Why tells the owner of the job so.
	Unless []string
	Why    string
}

// Elastic is the pod set of a kind whose jobs can start with fewer pods than they request. The release lowers a field
// of the job, and a suspension restores it.
type Elastic struct {
	PodSet string
	// Path of the field with the number of pods. A job with more than one pod must set it.
	Path []string
	// AnyCase: the operator accepts the second-to-last name of the path in any case.
	AnyCase bool
	// Needs is what a job must have to be elastic, in Markdown; empty for nothing.
	Needs string
}

// Doc has the texts of the kind for the tables of the documentation, in Markdown.
type Doc struct {
	// Needs is a requirement, such as "operator 2.4 or later"; it can be empty.
	Needs string
	// Mark is what a job must contain in addition to the suspend field to be marked by
	// it; empty for nothing.
	Mark string
	// Shows is the job's own status while it waits.
	Shows string
	// Counts lists the pods of the job that are charged to the quota.
	Counts string
	// Ready is the sign that all pods of the job are ready.
	Ready string
	// Frees is the event that frees the quota of the job.
	Frees string
	// Partial describes what a job does when it starts with fewer pods, if the kind is Elastic.
	Partial string
	// Stops is the sign that a job has stopped after a user suspended it.
	Stops string
	// Gang is why the release does not ask kube-scheduler to start all pods together or none: the tested version of
	// the kind has no field for it that can change while the job is suspended. When a kind gets such a field, the
	// test of gangs in test/frameworks fails, and the release can set the field.
	Gang string
}
