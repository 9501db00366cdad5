package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a kind of job as its users know it.
type kind struct {
	schema.GroupVersionKind
	// plural is its name in paths.
	plural string
	// state is what kubectl shows of a job of it, or nearly: two of the kinds have no
	// column for their state.
	state func(*unstructured.Unstructured) string
	// succeeded and failed are the states that it ends in. One that runs until
	// somebody deletes it has neither.
	succeeded, failed string
}

// endless tells whether jobs of the kind run until they are deleted.
func (k *kind) endless() bool { return k.succeeded == "" }

func (k *kind) resource() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.plural)
}

// kinds that the demos know.
var kinds = []*kind{
	kubeflow("v1", "TFJob", "tfjobs", lastCondition),
	kubeflow("v1", "PyTorchJob", "pytorchjobs", lastCondition),
	kubeflow("v2beta1", "MPIJob", "mpijobs", lastTrueCondition),
	{gvk("batch", "v1", "Job"), "jobs", jobStatus, "Complete", "Failed"},
	{gvk("jobset.x-k8s.io", "v1alpha2", "JobSet"), "jobsets", jobSetState, "Completed", "Failed"},
	{gvk("sparkoperator.k8s.io", "v1beta2", "SparkApplication"), "sparkapplications", at("status", "applicationState", "state"), "COMPLETED", "FAILED"},
	{gvk("ray.io", "v1", "RayJob"), "rayjobs", at("status", "jobDeploymentStatus"), "Complete", "Failed"},
	{gvk("ray.io", "v1", "RayCluster"), "rayclusters", at("status", "state"), "", ""},
	{gvk("argoproj.io", "v1alpha1", "Workflow"), "workflows", at("status", "phase"), "Succeeded", "Failed"},
}

func gvk(group, version, name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
}

func kubeflow(version, name, plural string, state func(*unstructured.Unstructured) string) *kind {
	return &kind{gvk("kubeflow.org", version, name), plural, state, "Succeeded", "Failed"}
}

// kindOf an object; nil when it is no job.
func kindOf(object schema.GroupVersionKind) *kind {
	i := slices.IndexFunc(kinds, func(k *kind) bool { return k.GroupVersionKind == object })
	if i < 0 {
		return nil
	}
	return kinds[i]
}

// at reads the state at a path.
func at(path ...string) func(*unstructured.Unstructured) string {
	return func(job *unstructured.Unstructured) string {
		state, _, _ := unstructured.NestedString(job.Object, path...)
		return state
	}
}

// condition of a job.
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

// lastCondition is the column STATE of the training operator's kinds, whether the
// condition is true or not.
func lastCondition(job *unstructured.Unstructured) string {
	conditions := conditionsOf(job)
	if len(conditions) == 0 {
		return ""
	}
	return conditions[len(conditions)-1].name
}

// lastTrueCondition is for MPIJob v2beta1, of which kubectl shows nothing. A condition
// that turns false comes last there as well.
func lastTrueCondition(job *unstructured.Unstructured) string {
	for _, c := range slices.Backward(conditionsOf(job)) {
		if c.holds {
			return c.name
		}
	}
	return ""
}

// jobStatus is the column STATUS, which the API server works out for kubectl.
func jobStatus(job *unstructured.Unstructured) string {
	conditions := conditionsOf(job)
	for _, name := range []string{"Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"} {
		if slices.Contains(conditions, condition{name, true}) {
			return name
		}
	}
	return "Running"
}

// jobSetState puts the columns TERMINALSTATE and SUSPENDED in one; between the two
// kubectl shows nothing, and the jobs of the set are counted.
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
