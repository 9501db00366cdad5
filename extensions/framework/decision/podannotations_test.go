package decision_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/extensions/jobset"
	"kube-queue.dev/kube-queue/extensions/mpijob"
	"kube-queue.dev/kube-queue/extensions/raycluster"
	"kube-queue.dev/kube-queue/extensions/rayjob"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/extensions/sparkapplication"
	"kube-queue.dev/kube-queue/extensions/tfjob"
	"kube-queue.dev/kube-queue/extensions/trainjob"
	"kube-queue.dev/kube-queue/extensions/workflow"
	"kube-queue.dev/kube-queue/test/require"
)

func TestAnnotationsAreWhereTheKindHasItsPods(t *testing.T) {
	const ray = `headGroupSpec: {template: {spec: {}}}, workerGroupSpecs: [{groupName: small, template: {spec: {}}}, {groupName: head, template: {metadata: {annotations: {x/y: a}}}}]`
	tests := []struct {
		name    string
		adapter framework.Adapter
		job     string
		// added and recorded have entries PODSET KEY VALUE and PODSET KEY.
		added, recorded []string
		// patch is what changes, and unplaced the explanations.
		patch, unplaced string
	}{
		{"a Job", job.New(), `{spec: {template: {spec: {}}}}`, []string{"main a/b 1"}, nil,
			`add /spec/template/metadata {"annotations":{"a/b":"1"}}`, ``},
		{"a Job whose last release added another", job.New(), `{spec: {template: {metadata: {annotations: {a/b: "0", a/c: "2"}}}}}`, []string{"main a/b 1"}, []string{"main a/b", "main a/c"},
			`remove /spec/template/metadata/annotations/a~1c
			replace /spec/template/metadata/annotations/a~1b "1"`, ``},
		{"one that gets none now", job.New(), `{spec: {template: {metadata: {annotations: {a/b: "0", x: "y"}}}}}`, nil, []string{"main a/b"},
			`remove /spec/template/metadata/annotations/a~1b`, ``},
		{"not a pod set that a Job does not have", job.New(), `{spec: {template: {spec: {}}}}`, []string{"worker a/b 1"}, nil,
			``, `worker: the Job contains no template of these pods`},
		{"roles, in any case", tfjob.New(), `{spec: {tfReplicaSpecs: {WORKER: {template: {spec: {}}}, PS: {template: {metadata: {annotations: {x: "y"}}}}}}}`,
			[]string{"ps a/b 1", "worker a/b 2"}, nil,
			`add /spec/tfReplicaSpecs/PS/template/metadata/annotations/a~1b "1"
			add /spec/tfReplicaSpecs/WORKER/template/metadata {"annotations":{"a/b":"2"}}`, ``},
		{"the launcher of an MPIJob", mpijob.V2beta1(), `{spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {}}}, Worker: {template: {spec: {}}}}}}`,
			[]string{"launcher a/b 1"}, nil, `add /spec/mpiReplicaSpecs/Launcher/template/metadata {"annotations":{"a/b":"1"}}`, ``},
		{"a group of Jobs", jobset.New(), `{spec: {replicatedJobs: [{name: a, template: {spec: {template: {spec: {}}}}}, {name: b, template: {spec: {template: {metadata: {}}}}}]}}`,
			[]string{"b a/b 1"}, nil, `add /spec/replicatedJobs/1/template/spec/template/metadata/annotations {"a/b":"1"}`, ``},
		{"the head of a RayJob", rayjob.New(), `{spec: {rayClusterSpec: {` + ray + `}}}`, []string{"head a/b 1"}, nil,
			`add /spec/rayClusterSpec/headGroupSpec/template/metadata {"annotations":{"a/b":"1"}}`, ``},
		{"head and workers of a RayJob", rayjob.New(), `{spec: {rayClusterSpec: {` + ray + `}}}`, []string{"head a/b 1", "small a/b 2", "worker-head x/y 3"}, nil,
			`add /spec/rayClusterSpec/headGroupSpec/template/metadata {"annotations":{"a/b":"1"}}
			add /spec/rayClusterSpec/workerGroupSpecs/0/template/metadata {"annotations":{"a/b":"2"}}
			replace /spec/rayClusterSpec/workerGroupSpecs/1/template/metadata/annotations/x~1y "3"`, ``},
		{"the submitter, if the RayJob has its template", rayjob.New(), `{spec: {submitterPodTemplate: {spec: {}}, rayClusterSpec: {` + ray + `}}}`, []string{"submitter a/b 1"}, nil,
			`add /spec/submitterPodTemplate/metadata {"annotations":{"a/b":"1"}}`, ``},
		{"but not that of the operator", rayjob.New(), `{spec: {rayClusterSpec: {` + ray + `}}}`, []string{"submitter a/b 1"}, nil,
			``, `submitter: the RayJob contains no template of these pods`},
		{"what the last release added to workers is removed", raycluster.New(), `{spec: {` + ray + `}}`, nil, []string{"worker-head x/y", "small x/y"},
			`remove /spec/workerGroupSpecs/1/template/metadata/annotations/x~1y`, ``},
		{"a TrainJob, by a patch of its runtime", trainjob.New(), `{spec: {runtimeRef: {name: torch}}}`, []string{"node a/b 1"}, nil,
			`add /spec/runtimePatches [{"manager":"kube-queue.dev/job-extensions","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"node","template":{"spec":{"template":{"metadata":{"annotations":{"a/b":"1"}}}}}}]}}}}]`, ``},
		{"a TrainJob with patches of others", trainjob.New(), `{spec: {runtimePatches: [{manager: example.com/a}]}}`, []string{"node a/b 1"}, nil,
			`add /spec/runtimePatches/- {"manager":"kube-queue.dev/job-extensions","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"node","template":{"spec":{"template":{"metadata":{"annotations":{"a/b":"1"}}}}}}]}}}}`, ``},
		{"the patch of the last release is removed", trainjob.New(), `{spec: {runtimePatches: [{manager: kube-queue.dev/job-extensions, time: now}]}}`, nil, []string{"node a/b"},
			`remove /spec/runtimePatches`, ``},
		{"a Workflow", workflow.New(), `{spec: {templates: []}}`, []string{"workflow a/b 1"}, nil,
			`add /spec/podMetadata {"annotations":{"a/b":"1"}}`, ``},
		{"not a Workflow that refers to a template", workflow.New(), `{spec: {workflowTemplateRef: {name: a}}}`, []string{"workflow a/b 1"}, nil,
			``, `workflow: Argo reads the spec of a Workflow with spec.workflowTemplateRef only once, before its release`},
		{"not a SparkApplication", sparkapplication.New(), `{spec: {driver: {}}}`, []string{"driver a/b 1"}, nil,
			``, `driver: the Spark operator discards and repeats the start of a SparkApplication if its release changes any other field than spec.suspend`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			was := jsonOf(t, test.job)
			now := runtime.DeepCopyJSON(was)
			added, recorded := annotationsOf(test.added), annotationsOf(test.recorded)
			_, unplaced := decision.Annotate(test.adapter.Kind(), now, added, recorded)
			var why []string
			for podSet, reason := range unplaced {
				why = append(why, podSet+": "+reason)
			}
			if got := strings.Join(why, "\n"); got != test.unplaced {
				t.Errorf("it explains\n%s, not\n%s", got, test.unplaced)
			}
			var operations []string
			for _, o := range decision.OperationsOf(was, now) {
				text := o.Op + " " + o.Path
				if o.Value != nil {
					text += " " + asJSON(t, o.Value)
				}
				operations = append(operations, text)
			}
			if got, want := strings.Join(operations, "\n"), strings.ReplaceAll(test.patch, "\n\t\t\t", "\n"); got != want {
				t.Errorf("the patch is\n%s, not\n%s", got, want)
			}
		})
	}
}

// Pods of a set that cannot grow do not pass the gate as pods of another set, whatever their owner has written.
func TestOnlyTheReleaseSaysAsWhichPodsOthersPass(t *testing.T) {
	const forged = `template: {metadata: {annotations: {kube-queue/growth: small}}}`
	was := jsonOf(t, `{spec: {headGroupSpec: {`+forged+`}, workerGroupSpecs: [{groupName: small, replicas: 1, template: {metadata: {labels: {ray.io/group: large}}}},
		{groupName: large, replicas: 1, numOfHosts: 2, `+forged+`}]}}`)
	cluster := raycluster.New().New()
	require.NoError(t, json.Unmarshal([]byte(asJSON(t, was)), cluster))
	unit := &v1alpha1.QueueUnit{Spec: v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "head"}, {Name: "small"}, {Name: "large"}}},
		Status: v1alpha1.QueueUnitStatus{Growth: v1alpha1.GrowthGate}}
	added, recorded := decision.PodAnnotations{}, decision.PodAnnotations{}
	added.GateGrowth(raycluster.New(), cluster, unit, recorded)
	now := runtime.DeepCopyJSON(was)
	if _, unplaced := decision.Annotate(raycluster.New().Kind(), now, added, recorded); len(unplaced) > 0 {
		t.Errorf("not annotated: %v", unplaced)
	}
	const want = `[{"op":"remove","path":"/spec/headGroupSpec/template/metadata/annotations/kube-queue~1growth"},` +
		`{"op":"add","path":"/spec/workerGroupSpecs/0/template/metadata/annotations","value":{"kube-queue/growth":"small"}},` +
		`{"op":"remove","path":"/spec/workerGroupSpecs/1/template/metadata/annotations/kube-queue~1growth"}]`
	if got := asJSON(t, decision.OperationsOf(was, now)); got != want {
		t.Errorf("the patch is\n%s, not\n%s", got, want)
	}
}

func TestEachKindSaysWhereItsPodsHaveAnnotations(t *testing.T) {
	for _, adapter := range registry.All() {
		kind := adapter.Kind()
		if (len(kind.Places) > 0) == (kind.NoPlaces != "") {
			t.Errorf("%s has %d places, and the explanation %q", kind.Name, len(kind.Places), kind.NoPlaces)
		}
		for _, place := range kind.Places {
			path := place.Below
			if place.PodSet != "" {
				path = place.Path
			}
			if place.Own != nil {
				path = place.Own.Below
			}
			if len(path) < 2 || path[len(path)-1] != "annotations" {
				t.Errorf("%s has annotations at %v", kind.Name, path)
			}
			if (place.Unless == nil) != (place.Why == "") {
				t.Errorf("%s does not explain %v", kind.Name, place.Unless)
			}
		}
	}
}

func TestTheAnnotationsOfReadyChecksAreAdded(t *testing.T) {
	check := func(name string, state v1alpha1.CheckState, podSet, key, value string) v1alpha1.AdmissionCheckState {
		return v1alpha1.AdmissionCheckState{Name: name, State: state, PodSetUpdates: []v1alpha1.PodSetUpdate{{Name: podSet, Annotations: map[string]string{key: value}}}}
	}
	unit := &v1alpha1.QueueUnit{Status: v1alpha1.QueueUnitStatus{AdmissionChecks: []v1alpha1.AdmissionCheckState{
		check("a", v1alpha1.CheckReady, "ps", "a/b", "1"), check("b", v1alpha1.CheckReady, "worker", "a/b", "2"), check("c", v1alpha1.CheckReady, "worker", "a/c", "3"),
		check("d", v1alpha1.CheckReady, "worker", "a/c", "4"), check("e", v1alpha1.CheckRetry, "worker", "a/d", "5"), check("f", v1alpha1.CheckReady, "ps", "a b", "6"),
	}}}
	added, unplaced := decision.PodAnnotationsOf(unit)
	if got, want := asJSON(t, added), `{"ps":{"a/b":"1"},"worker":{"a/b":"2","a/c":"4"}}`; got != want {
		t.Errorf("they are %s, not %s", got, want)
	}
	if got := unplaced["ps"]; !strings.HasPrefix(got, `"a b" of admission check f is not the name of an annotation: `) {
		t.Errorf("the explanation is %q", got)
	}
	record := added.Record()
	if want := "a/b=ps:worker,a/c=worker"; record != want {
		t.Errorf("the record is %q, not %q", record, want)
	}
	released := decode(t, job.New(), `{metadata: {annotations: {`+wellknown.PodAnnotationsAnnotation+`: "`+record+`"}}}`)
	if got, want := asJSON(t, decision.RecordedOf(released)), `{"ps":{"a/b":""},"worker":{"a/b":"","a/c":""}}`; got != want {
		t.Errorf("it reads as %s, not %s", got, want)
	}
	for _, damaged := range []string{"", ",", "=", "a/b", "a/b="} {
		released.SetAnnotations(map[string]string{wellknown.PodAnnotationsAnnotation: damaged})
		if got := decision.RecordedOf(released); len(got) != 0 {
			t.Errorf("%q reads as %v", damaged, got)
		}
	}
}

func TestPropertyAJSONPatchMakesTheOtherObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was, now := drawObject(t, 3), drawObject(t, 3)
		if rapid.Bool().Draw(t, "similar") {
			now = runtime.DeepCopyJSON(was)
			decision.Merge(now, drawObject(t, 2))
		}
		if got := adaptertest.Patched(t, was, decision.OperationsOf(was, now)); !equality.Semantic.DeepEqual(got, now) {
			t.Fatalf("it makes\n%v, not\n%v", got, now)
		}
	})
}

// drawObject draws an object without nulls.
func drawObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "fields") {
		object[rapid.SampledFrom([]string{"a", "b", "x/y", "~", "~1", ""}).Draw(t, "name")] = drawValue(t, depth)
	}
	return object
}

func drawValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 3).Draw(t, "kind")
	switch {
	case depth == 0 || kind == 0:
		return rapid.SampledFrom([]any{"", "s", true, false, 1.5}).Draw(t, "value")
	case kind == 1:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	default:
		return drawObject(t, depth-1)
	}
}

func annotationsOf(entries []string) decision.PodAnnotations {
	annotations := decision.PodAnnotations{}
	for _, entry := range entries {
		words := append(strings.Fields(entry), "")
		if annotations[words[0]] == nil {
			annotations[words[0]] = map[string]string{}
		}
		annotations[words[0]][words[1]] = words[2]
	}
	return annotations
}

func jsonOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &object))
	return object
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

// Otherwise the webhook of Trainer sets it, and then rejects the job that it has rewritten.
func TestThePatchOfATrainJobHasItsTime(t *testing.T) {
	kind, at := trainjob.New().Kind(), time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	job := jsonOf(t, `{spec: {runtimePatches: [{manager: example.com/a}]}}`)
	decision.SetTime(kind, job, at)
	if got := asJSON(t, job); strings.Contains(got, `"time"`) {
		t.Errorf("the patch of another manager has a time: %s", got)
	}
	decision.Annotate(kind, job, decision.PodAnnotations{"node": {"a/b": "1"}}, nil)
	decision.SetTime(kind, job, at)
	if got := asJSON(t, job); strings.Count(got, `"time":"2026-01-02T12:00:00Z"`) != 1 {
		t.Errorf("the time is not set once: %s", got)
	}
}
