package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// object parses YAML, with numbers like those of clients.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// named returns the kind with this name.
func named(t *testing.T, name string) *kind {
	t.Helper()
	for _, k := range kinds {
		if k.Kind == name {
			return k
		}
	}
	t.Fatalf("there is no kind %s", name)
	return nil
}

func TestTheStateIsTheOneThatKubectlShows(t *testing.T) {
	for _, c := range []struct{ name, kind, object, want string }{
		{"a kubeflow job that is new has none", "TFJob", `{status: {}}`, ""},
		{"of a TFJob the last condition counts, true or not", "TFJob",
			`{status: {conditions: [{type: Created, status: "True"}, {type: Suspended, status: "False"}]}}`, "Suspended"},
		{"of an MPIJob the last that is true", "MPIJob",
			`{status: {conditions: [{type: Created, status: "True"}, {type: Suspended, status: "False"}]}}`, "Created"},
		{"an MPIJob of which nothing is true", "MPIJob", `{status: {conditions: [{type: Running, status: "False"}]}}`, ""},
		{"a Job runs unless a condition says otherwise", "Job", `{status: {active: 1}}`, "Running"},
		{"a Job that was suspended runs again", "Job", `{status: {conditions: [{type: Suspended, status: "False"}]}}`, "Running"},
		{"the end of a Job outdoes what came before it", "Job",
			`{status: {conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}}`, "Complete"},
		{"a JobSet that is held", "JobSet", `{spec: {suspend: true}}`, "Suspended"},
		{"a JobSet without jobs yet", "JobSet", `{spec: {suspend: false}, status: {replicatedJobsStatus: [{active: 0}]}}`, ""},
		{"a JobSet with a job", "JobSet", `{spec: {suspend: false}, status: {replicatedJobsStatus: [{active: 0}, {active: 1}]}}`, "Running"},
		{"a JobSet whose jobs have all succeeded", "JobSet", `{status: {replicatedJobsStatus: [{active: 0, succeeded: 2}]}}`, "Running"},
		{"a JobSet at its end", "JobSet", `{spec: {suspend: false}, status: {terminalState: Completed}}`, "Completed"},
		{"a SparkApplication", "SparkApplication", `{status: {applicationState: {state: SUBMITTED}}}`, "SUBMITTED"},
		{"a RayJob", "RayJob", `{status: {jobStatus: PENDING, jobDeploymentStatus: Initializing}}`, "Initializing"},
		{"a RayCluster", "RayCluster", `{status: {state: ready}}`, "ready"},
		{"a Workflow", "Workflow", `{status: {phase: Running}}`, "Running"},
		{"a status of another shape is none", "TFJob", `{status: {conditions: [Created]}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, _ := named(t, c.kind).look(object(t, c.object)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestAKindIsKnownByItsVersionToo(t *testing.T) {
	if k := kindOf(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"}); k == nil || k.plural != "mpijobs" {
		t.Errorf("MPIJob v2beta1 is %v", k)
	}
	if k := kindOf(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "MPIJob"}); k != nil {
		t.Errorf("MPIJob v1 is %v", k)
	}
}
