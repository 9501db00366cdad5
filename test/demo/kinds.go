package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	samples "kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/audit"
)

// kind is a kind of job.
type kind struct {
	schema.GroupVersionKind
	// plural is its name in API paths.
	plural string
	// extension is its name in --enabled-extensions.
	extension string
	// endless: jobs of the kind run until they are deleted.
	endless bool
	// view reads the state of its jobs, as the audit checker does.
	view audit.KindView
}

func (k *kind) resource() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.plural)
}

// unshown is a kind that no demo shows: it and mpiv2beta1 are versions of the same CRD, and
// a cluster can have only one of them.
const unshown = "mpiv1"

// kinds are the kinds of the demos.
var kinds, errKinds = known()

func known() ([]*kind, error) {
	all, err := samples.All()
	if err != nil {
		return nil, err
	}
	var found []*kind
	for _, sample := range all {
		if sample.Name == unshown {
			continue
		}
		view, err := audit.ViewOf(sample.Group, sample.Version, sample.Resource)
		if err != nil {
			return nil, err
		}
		found = append(found, &kind{
			GroupVersionKind: sample.GroupVersionKind, plural: sample.Resource, extension: sample.Name,
			endless: sample.Endless, view: view,
		})
	}
	return found, nil
}

// shown contains the kinds whose displayed state differs from the state of the checker,
// because kubectl has no column for it or a column that the API server computes.
var shown = map[string]func(*unstructured.Unstructured) string{
	"job": jobStatus, "jobset": jobSetState, "mpiv2beta1": lastTrueCondition,
}

// look returns the displayed state of a job, and its outcome if it has ended.
func (k *kind) look(object *unstructured.Unstructured) (state, end string) {
	view, err := k.view.Job(object.Object)
	if err != nil { // never for an object from a cluster
		return err.Error(), ""
	}
	if state, known := shown[k.extension]; known {
		return state(object), view.Outcome
	}
	return view.State, view.Outcome
}

// kindOf returns the kind of an object; nil if it is not a job.
func kindOf(object schema.GroupVersionKind) *kind {
	i := slices.IndexFunc(kinds, func(k *kind) bool { return k.GroupVersionKind == object })
	if i < 0 {
		return nil
	}
	return kinds[i]
}

// at returns a function that reads the text at a path.
func at(path ...string) func(*unstructured.Unstructured) string {
	return func(job *unstructured.Unstructured) string {
		state, _, _ := unstructured.NestedString(job.Object, path...)
		return state
	}
}

// condition is a condition of a job.
type condition struct {
	name  string
	holds bool
}

func conditionsOf(job *unstructured.Unstructured) []condition {
	list, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	var conditions []condition
	for _, item := range list {
		c, _ := item.(map[string]any)
		name, _ := c["type"].(string)
		conditions = append(conditions, condition{name, c["status"] == "True"})
	}
	return conditions
}

// lastTrueCondition is the state of MPIJob v2beta1, for which kubectl shows no state. Its last
// condition may be false.
func lastTrueCondition(job *unstructured.Unstructured) string {
	for _, c := range slices.Backward(conditionsOf(job)) {
		if c.holds {
			return c.name
		}
	}
	return ""
}

// jobStatus is the column STATUS, which the API server computes for kubectl.
func jobStatus(job *unstructured.Unstructured) string {
	conditions := conditionsOf(job)
	for _, name := range []string{"Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"} {
		if slices.Contains(conditions, condition{name, true}) {
			return name
		}
	}
	return "Running"
}

// jobSetState combines the columns TERMINALSTATE and SUSPENDED. For a JobSet that is neither,
// kubectl shows nothing, and the state depends on the jobs of the set.
func jobSetState(job *unstructured.Unstructured) string {
	if state := at("status", "terminalState")(job); state != "" {
		return state
	}
	if suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend"); suspended {
		return "Suspended"
	}
	jobs, _, _ := unstructured.NestedSlice(job.Object, "status", "replicatedJobsStatus")
	for _, item := range jobs {
		status, _ := item.(map[string]any)
		for _, field := range []string{"active", "succeeded"} {
			if n, _, _ := unstructured.NestedInt64(status, field); n > 0 {
				return "Running"
			}
		}
	}
	return ""
}
