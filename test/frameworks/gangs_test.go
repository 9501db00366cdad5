package frameworks

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// gangField is a field that could make the pods of a job start together: a path in the job, and what to look for
// there.
type gangField struct {
	path  []string
	value any
	// field is the field of a pod or a Job in value.
	field string
}

var (
	// podGroup is schedulingGroup of a pod, which Kubernetes has since 1.36.
	podGroup = map[string]any{"podGroupName": "gang"}
	// policy is scheduling of a Job, which Kubernetes has since 1.37.
	policy = map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{}}}
)

// firstWithGroups is the first version of k8s.io/api with schedulingGroup in pods.
var firstWithGroups = version.MustParseSemantic("v0.36.0")

// expectNoFieldForGangs checks that a held job has no field by which its release could make its pods start together,
// as docs/reference/kinds.md says. The API server or a webhook refuses the change or drops the field, or the operator
// is built with an API that lacks it.
func (s *story) expectNoFieldForGangs(name string) {
	s.t.Helper()
	fields := gangFields(s.kind, s.Object(s.resource, name).Object)
	if len(fields) < 2 {
		s.t.Errorf("%s %s has no pod template: %v", s.kind, name, fields)
	}
	for _, f := range fields {
		path := "/" + strings.Join(f.path, "/")
		patch, err := json.Marshal([]map[string]any{{"op": "add", "path": path, "value": f.value}})
		harness.Must(s.t, err)
		after, err := s.objects().Patch(s.t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			continue
		}
		harness.Must(s.t, err)
		if text, err := json.Marshal(after.Object["spec"]); err != nil || !strings.Contains(string(text), f.field) {
			harness.Must(s.t, err)
			continue
		}
		if api := s.apiOfOperator(); api.AtLeast(firstWithGroups) {
			s.t.Errorf("a held %s may get %s, and its operator is built with k8s.io/api %v, which has %s: see docs/reference/kinds.md#gangs-of-kubernetes", s.kind, path, api, f.field)
		}
	}
}

// apiOfOperator returns the version of k8s.io/api that the operator of the kind is built with.
func (s *story) apiOfOperator() *version.Version {
	s.t.Helper()
	operators, err := clustertest.Operators(s.t.Context())
	harness.Must(s.t, err)
	for _, o := range operators {
		if o.Runs(s.sample.Kind) {
			module, err := o.BuiltWith(s.t.Context(), "k8s.io/api")
			harness.Must(s.t, err)
			return version.MustParseSemantic(module)
		}
	}
	s.t.Fatalf("no operator runs %s", s.kind)
	return nil
}

// gangFields returns all fields of a job that could make its pods start together.
func gangFields(kind string, job map[string]any) []gangField {
	all := []gangField{{path: []string{"spec", "scheduling"}, value: policy, field: "schedulingPolicy"}}
	switch kind {
	case "TrainJob":
		all = append(all, inRuntime("node", job))
	case "SparkApplication": // templates are optional
		template := map[string]any{"spec": map[string]any{"schedulingGroup": podGroup}}
		for _, role := range []string{"driver", "executor"} {
			all = append(all, gangField{path: []string{"spec", role, "template"}, value: template, field: "schedulingGroup"})
		}
	case "Workflow":
		all = append(all, gangField{path: []string{"spec", "podSpecPatch"}, value: `{"schedulingGroup": {"podGroupName": "gang"}}`, field: "schedulingGroup"})
	}
	return append(all, inTemplates(nil, job)...)
}

// inTemplates returns the fields of the pods and Jobs whose templates are in the value.
func inTemplates(path []string, value any) []gangField {
	var all []gangField
	switch value := value.(type) {
	case map[string]any:
		if _, isPod := value["containers"]; isPod {
			all = append(all, gangField{path: append(slices.Clone(path), "schedulingGroup"), value: podGroup, field: "schedulingGroup"})
		}
		if _, isJob := value["template"]; isJob {
			all = append(all, gangField{path: append(slices.Clone(path), "scheduling"), value: policy, field: "schedulingPolicy"})
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if name == "metadata" || name == "status" {
				continue
			}
			all = append(all, inTemplates(append(slices.Clone(path), strings.ReplaceAll(name, "/", "~1")), value[name])...)
		}
	case []any:
		for i, inner := range value {
			all = append(all, inTemplates(append(slices.Clone(path), strconv.Itoa(i)), inner)...)
		}
	}
	return all
}

// inRuntime returns the field of the pods of a TrainJob, whose templates are in its runtime.
func inRuntime(replicatedJob string, job map[string]any) gangField {
	pod := map[string]any{"spec": map[string]any{"schedulingGroup": podGroup}}
	patch := map[string]any{"manager": "example.com/gangs", "trainingRuntimeSpec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"replicatedJobs": []any{map[string]any{"name": replicatedJob, "template": map[string]any{"spec": map[string]any{"template": pod}}}}}}}}
	patches, _, _ := unstructured.NestedSlice(job, "spec", "runtimePatches")
	return gangField{path: []string{"spec", "runtimePatches"}, value: append(patches, patch), field: "schedulingGroup"}
}
