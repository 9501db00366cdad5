package decision_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/extensions/pytorchjob"
	"kube-queue.dev/kube-queue/extensions/tfjob"
	"kube-queue.dev/kube-queue/test/require"
)

const onePod = `template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}`

func jobWith(annotations, spec string) string {
	return `{metadata: {annotations: {` + annotations + `}}, spec: {` + spec + `, ` + onePod + `}}`
}

func torchWith(annotations, elastic, worker string, replicas int) string {
	return fmt.Sprintf(`{metadata: {annotations: {%s}}, spec: {%s, pytorchReplicaSpecs: {Master: {replicas: 1, %s}, %s: {replicas: %d, %s}}}}`,
		annotations, elastic, onePod, worker, replicas, onePod)
}

func desiredOf(t *testing.T, adapter framework.Adapter, text string) *decision.Desired {
	t.Helper()
	return decision.DesiredOf(adapter, decode(t, adapter, text), nil, adaptertest.Usual(), nil)
}

// counts lists the pod sets as NAME=MINIMUM/COUNT.
func counts(sets []v1alpha1.PodSet) string {
	var all []string
	for _, set := range sets {
		least := "-"
		if set.MinCount != nil {
			least = fmt.Sprint(*set.MinCount)
		}
		all = append(all, fmt.Sprintf("%s=%s/%d", set.Name, least, set.Count))
	}
	return strings.Join(all, " ")
}

func TestMinCounts(t *testing.T) {
	const rule = "kube-queue/min-count: "
	elastic := func(policy string) string { return "elasticPolicy: {" + policy + "}" }
	tests := []struct {
		name    string
		adapter framework.Adapter
		job     string
		// counts, ignored and err are the expected results.
		counts, ignored, err string
	}{
		{"a Job without a minimum", job.New(), jobWith("", "parallelism: 8"), "main=-/8", "", ""},
		{"a Job with one", job.New(), jobWith(rule+`"main=4"`, "parallelism: 8"), "main=4/8", "", ""},
		{"with spaces", job.New(), jobWith(rule+`" main = 4 "`, "parallelism: 8"), "main=4/8", "", ""},
		{"all its pods", job.New(), jobWith(rule+`"main=8"`, "parallelism: 8"), "main=8/8", "", ""},
		{"a pod set that there is not", job.New(), jobWith(rule+`"worker=4"`, "parallelism: 8"), "", "", `the job has no pod set "worker", only main`},
		{"more than there are", job.New(), jobWith(rule+`"main=9"`, "parallelism: 8"), "", "", `"main" must be an integer from 1 to 8`},
		{"none at all", job.New(), jobWith(rule+`"main=0"`, "parallelism: 8"), "", "", `not "0"`},
		{"no number", job.New(), jobWith(rule+`"main"`, "parallelism: 8"), "", "", `not ""`},
		{"a pod set twice", job.New(), jobWith(rule+`"main=1,main=2"`, "parallelism: 8"), "", "", "twice"},
		{"a Job of which fewer pods than the minimum are left", job.New(),
			strings.TrimSuffix(jobWith(rule+`"main=4"`, "parallelism: 8, completions: 10"), "}") + `, status: {succeeded: 7}}`, "main=3/3", "", ""},
		{"a PyTorchJob that is not elastic", pytorchjob.New(), torchWith(rule+`"worker=2"`, "nprocPerNode: auto", "Worker", 4), "master=-/1 worker=-/4",
			`pod set "worker" always starts with all its pods: a PyTorchJob without spec.elasticPolicy`, ""},
		{"an elastic one", pytorchjob.New(), torchWith(rule+`"worker=2"`, elastic(""), "Worker", 4), "master=-/1 worker=2/4", "", ""},
		{"one that says how many it needs", pytorchjob.New(), torchWith("", elastic("minReplicas: 3, maxReplicas: 6"), "Worker", 4), "master=-/1 worker=3/4", "", ""},
		{"one that needs more than it has", pytorchjob.New(), torchWith("", elastic("minReplicas: 5, maxReplicas: 6"), "Worker", 4), "master=-/1 worker=4/4", "", ""},
		{"one that needs all that it may have", pytorchjob.New(), torchWith("", elastic("maxReplicas: 4"), "Worker", 4), "master=-/1 worker=4/4", "", ""},
		{"one that needs more than the annotation", pytorchjob.New(), torchWith(rule+`"worker=2"`, elastic("minReplicas: 3, maxReplicas: 6"), "Worker", 4), "", "",
			"must be at least 3, which the job itself requires, not 2"},
		{"its master", pytorchjob.New(), torchWith(rule+`"worker=4,master=1"`, elastic(""), "Worker", 4), "master=-/1 worker=4/4", "", ""},
		{"a kind that cannot", tfjob.New(), `{metadata: {annotations: {` + rule + `"worker=2"}}, spec: {tfReplicaSpecs: {Worker: {replicas: 4, ` + onePod + `}}}}`,
			"worker=-/4", `pod set "worker" always starts with all its pods`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := desiredOf(t, test.adapter, test.job)
			if (d.Invalid == "") != (test.err == "") || !strings.Contains(d.Invalid, test.err) {
				t.Fatalf("the job is invalid: %q, want %q", d.Invalid, test.err)
			}
			if got := counts(d.Spec.PodSets); got != test.counts {
				t.Errorf("pod sets are %s, want %s", got, test.counts)
			}
			if (d.Ignored == "") != (test.ignored == "") || !strings.Contains(d.Ignored, test.ignored) {
				t.Errorf("ignored because %q, want %q", d.Ignored, test.ignored)
			}
		})
	}
}

func admitted(spec v1alpha1.QueueUnitSpec, podSet string, count int32) *v1alpha1.QueueUnit {
	unit := &v1alpha1.QueueUnit{Spec: spec, Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseDequeued}}
	if count > 0 {
		unit.Status.AdmittedPodSets = []v1alpha1.AdmittedPodSet{{Name: podSet, Count: count}}
	}
	return unit
}

// patched returns the job with a merge patch.
func patched(t *testing.T, text string, patch map[string]any) string {
	t.Helper()
	was, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	data, err := json.Marshal(decision.Join(nil, patch))
	require.NoError(t, err)
	now, err := jsonpatch.MergePatch(was, data)
	require.NoError(t, err)
	return string(now)
}

// A job of 10 pods is released with 6, changes while it runs, and is suspended and released again.
func TestAJobIsReleasedWithThePodsOfItsUnitAndRequestsAllAgain(t *testing.T) {
	kinds := map[string]struct {
		adapter framework.Adapter
		podSet  string
		job     func(pods int) string
	}{
		"Job": {job.New(), "main", func(pods int) string {
			return jobWith(`kube-queue/min-count: "main=4"`, fmt.Sprintf("completions: 20, parallelism: %d", pods))
		}},
		"PyTorchJob": {pytorchjob.New(), "worker", func(pods int) string {
			return torchWith("", "elasticPolicy: {minReplicas: 4, maxReplicas: 12}", "Worker", pods)
		}},
		"PyTorchJob with another case": {pytorchjob.New(), "worker", func(pods int) string {
			return torchWith("", "elasticPolicy: {minReplicas: 4, maxReplicas: 12}", "worker", pods)
		}},
	}
	tests := []struct {
		name     string
		admitted int32
		// now is the number of pods that the owner sets in the released job; 0 for no change.
		now                          int
		released, lowered, suspended int
	}{
		{"with fewer pods", 6, 0, 6, 0, 10},
		{"with all", 0, 0, 10, 0, 10},
		{"with fewer pods, and lowered further", 6, 5, 6, 5, 5},
		{"with fewer pods, and raised", 6, 8, 6, 8, 8},
		{"with fewer pods, and raised beyond all", 6, 12, 6, 0, 12},
		{"with fewer pods, and its manifest applied again", 6, 10, 6, 0, 10},
	}
	for kind, k := range kinds {
		for _, test := range tests {
			t.Run(kind+" "+test.name, func(t *testing.T) {
				pods := func(text string) int {
					sets, err := k.adapter.Pods(decode(t, k.adapter, text))
					require.NoError(t, err)
					return int(sets.Sets[len(sets.Sets)-1].Count)
				}
				text := k.job(10)
				spec := desiredOf(t, k.adapter, text).Spec
				unit := admitted(spec, k.podSet, test.admitted)
				release := func() {
					t.Helper()
					patch, err := decision.Resized(k.adapter, decode(t, k.adapter, text), unit)
					require.NoError(t, err)
					text = patched(t, text, patch)
				}
				release()
				if got := pods(text); got != test.released {
					t.Fatalf("released with %d pods, want %d: %s", got, test.released, text)
				}
				if d := desiredOf(t, k.adapter, text); len(d.Changes(unit)) > 0 {
					t.Fatalf("after its release the unit changes: %v", d.Changes(unit))
				}
				if test.now > 0 {
					object := decode(t, k.adapter, k.job(test.now))
					object.SetAnnotations(decode(t, k.adapter, text).GetAnnotations())
					data, err := json.Marshal(object)
					require.NoError(t, err)
					text = string(data)
				}
				fields := decision.LoweredOf(k.adapter, decode(t, k.adapter, text), nil, nil, adaptertest.Usual(), unit)
				if sets, lower := fields["podSets"].([]v1alpha1.PodSet); lower != (test.lowered > 0) || lower && int(sets[len(sets)-1].Count) != test.lowered {
					t.Errorf("the unit is lowered to %v, want %d pods", fields, test.lowered)
				}
				patch, err := decision.Restored(k.adapter, decode(t, k.adapter, text))
				require.NoError(t, err)
				text = patched(t, text, patch)
				if got := pods(text); got != test.suspended {
					t.Errorf("suspended with %d pods, want %d", got, test.suspended)
				}
				if strings.Contains(text, "original-count") || strings.Contains(text, "admitted-count") {
					t.Errorf("the suspended job still has what its release recorded: %s", text)
				}
			})
		}
	}
}

// A copy of a job that was released with fewer pods has its annotations.
func TestACopyOfAJobThatWasReleasedWithFewerPodsRequestsAll(t *testing.T) {
	text := jobWith(`kube-queue/min-count: "main=4", kube-queue/original-count: "main=10", kube-queue/admitted-count: "main=6"`, "parallelism: 6")
	spec := desiredOf(t, job.New(), text).Spec
	if got := counts(spec.PodSets); got != "main=4/10" {
		t.Errorf("pod sets are %s", got)
	}
	for admits, want := range map[int32]string{0: `"parallelism":10`, 8: `"parallelism":8`} {
		patch, err := decision.Resized(job.New(), decode(t, job.New(), text), admitted(spec, "main", admits))
		require.NoError(t, err)
		now := patched(t, text, patch)
		if !strings.Contains(now, want) || strings.Contains(now, "admitted-count") != (admits > 0) || admits > 0 && !strings.Contains(now, `"kube-queue/original-count":"main=10"`) {
			t.Errorf("admitted with %d pods, the copy is released as %s", admits, now)
		}
	}
}

// Users may damage the records by hand.
func TestDamagedRecordsOfTheNumberOfPodsAreDropped(t *testing.T) {
	for _, record := range []string{`kube-queue/original-count: "main=many"`, `kube-queue/original-count: "worker=10", kube-queue/admitted-count: "worker=6"`,
		`kube-queue/original-count: "main=-1", kube-queue/admitted-count: "main=6"`, `kube-queue/original-count: ""`} {
		text := jobWith(record, "parallelism: 6")
		if got := counts(desiredOf(t, job.New(), text).Spec.PodSets); got != "main=-/6" {
			t.Errorf("%s: pod sets are %s", record, got)
		}
		patch, err := decision.Restored(job.New(), decode(t, job.New(), text))
		require.NoError(t, err)
		if now := patched(t, text, patch); strings.Contains(now, "-count") || !strings.Contains(now, `"parallelism":6`) {
			t.Errorf("%s: suspended as %s", record, now)
		}
	}
}
