package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	oneTree = "apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\nmetadata: {name: t, namespace: kube-system}\nspec: {root: {name: company, max: {cpu: 12}, children: [{name: research, namespaces: [research]}]}}\n"
	twoPods = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: two, annotations: {scheduling.x-k8s.io/suspend: \"true\", scheduling.x-k8s.io/priority: \"7\"}, labels: {kube-queue/preemptible: \"false\"}}\n" +
		"spec: {parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 500m}}}]}}}\n"
)

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const roomyTree = "apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\nmetadata: {name: t, namespace: kube-system}\n" +
	"spec: {root: {name: company, max: {cpu: 12}, children: [{name: research, namespaces: [research, other], min: {cpu: 4}, max: {cpu: 12, kube-queue/max-jobs: 9}}]}}\n"

func TestTheExitStatusOfSimulateIsForScripts(t *testing.T) {
	a := newAPI(t, four)
	expect(t, a, 1, `NAMESPACE   JOB       RESULT   QUOTA              REASON
research    job/two   waits    company/research   MaxJobs
  research/job/two: job limit reached in quota company/research: requested 1 job, used 2 of max 2 (kube-queue/max-jobs)

2 units would wait.
NAMESPACE   JOB           UNITS   QUEUE              PHASE      REASON    PRIORITY   REQUESTS   WAITED   AGE
research    job/train-c       1   company-research   Enqueued   MaxJobs   0          500m cpu   36s      36s
other       tfjob/first       1   company-research   Enqueued   MaxJobs   5          1 cpu      30s      30s
`, "", "simulate", "-f", file(t, twoPods))
	// It goes first because of its higher priority.
	a.objects[unitsOf] = slices.DeleteFunc(a.objects[unitsOf], func(u map[string]any) bool { return u["metadata"].(map[string]any)["name"] == "big-tfjob-3e23e81600" })
	expect(t, a, 0, `NAMESPACE   JOB       RESULT   QUOTA              REASON
research    job/two   starts   company/research

2 units would wait.
NAMESPACE   JOB           UNITS   QUEUE              PHASE      REASON    PRIORITY   REQUESTS   WAITED   AGE
research    job/train-c       1   company-research   Enqueued   MaxJobs   0          500m cpu   36s      36s
other       tfjob/first       1   company-research   Enqueued   MaxJobs   5          1 cpu      30s      30s
`, "", "simulate", "-f", file(t, twoPods))
	if len(a.requests) > 0 {
		t.Errorf("it writes %q", a.requests)
	}
	a.objects[queuesOf][0]["spec"] = map[string]any{"admissionChecks": []any{"nodes"}}
	shows(t, a, 0, []string{"research/job/two: starts when its admission checks are ready: nodes\n"}, "simulate", "-f", file(t, twoPods))
	a.objects[queuesOf][0]["spec"] = map[string]any{"stop": "Hold"}
	shows(t, a, 1, []string{"QueueStopped"}, "simulate", "-f", file(t, twoPods))
	a.forbidden["list "+unitsOf] = true
	says(t, a, 2, []string{`cannot list resource "queueunits"`}, "simulate", "-f", file(t, twoPods))
}

func TestATreeIsTried(t *testing.T) {
	a := newAPI(t, four)
	expect(t, a, 0, `The tree is valid.

2 units that wait now would start.
NAMESPACE   JOB           UNITS   QUEUE              PHASE      REASON   PRIORITY   REQUESTS   WAITED   AGE
research    job/train-c       1   company-research   Enqueued            0          500m cpu   36s      36s
other       tfjob/first       1   company-research   Enqueued            5          1 cpu      30s      30s

0 units would wait.
`, "", "simulate", "-f", file(t, roomyTree))
	// Running jobs exceed the tree.
	code, out, errs := a.run("simulate", "-f", file(t, strings.ReplaceAll(roomyTree, "cpu: 12", "cpu: 4")))
	if code != 1 || errs != "" || !strings.Contains(out, "  exceeded by what runs: cpu in quota company: used 5 of max 4\n") || !strings.Contains(out, "2 units would wait.") || !strings.Contains(out, "QuotaExceeded") {
		t.Errorf("exit status %d\n%s%s", code, out, errs)
	}
	// The pods of a job that has ended are charged with its unit.
	big := a.objects[unitsOf][slices.IndexFunc(a.objects[unitsOf], func(u map[string]any) bool { return u["metadata"].(map[string]any)["name"] == "big-tfjob-3e23e81600" })]
	big["status"].(map[string]any)["reason"] = "PodsRemain"
	if _, out, _ := a.run("simulate", "-f", file(t, strings.ReplaceAll(roomyTree, "cpu: 12", "cpu: 4"))); !strings.Contains(out, "cpu in quota company: used 5 of max 4\n") {
		t.Errorf("with pods that remain:\n%s", out)
	}
	// Pods that belong to no unit are charged to the same node as now.
	node := a.objects[treesOf][0]["status"].(map[string]any)["nodes"].([]any)
	for _, n := range node {
		n.(map[string]any)["unqueued"] = map[string]any{"cpu": "6500m"}
	}
	shows(t, a, 0, []string{"1 unit that waits now would start.\n", "1 unit would wait.\n"}, "simulate", "-f", file(t, roomyTree))
	code, out, errs = a.run("simulate", "-f", file(t, strings.Replace(oneTree, "namespaces:", "namespace:", 1)))
	if code != 1 || !strings.HasPrefix(out, "The tree is invalid.\n  error: ") || !strings.Contains(out, "namespaces") || errs != "" {
		t.Errorf("exit status %d\n%s%s", code, out, errs)
	}
	// The controller warns about these after the apply.
	for words, tree := range map[string]string{
		`namespace "nowhere" does not exist`:      strings.Replace(roomyTree, "[research,", "[research, nowhere,", 1),
		`the tree is in namespace "default", and`: strings.Replace(roomyTree, "kube-system", "default", 1),
	} {
		if code, out, _ := a.run("simulate", "-f", file(t, tree)); code != 0 || strings.Count(out, "warning: ") != 1 || !strings.Contains(out, words) {
			t.Errorf("exit status %d, want a warning with %q:\n%s", code, words, out)
		}
	}
	// Namespace other has no quota in this tree.
	if _, out, _ := a.run("simulate", "-f", file(t, oneTree)); !strings.Contains(out, "NoQuota") {
		t.Errorf("a namespace without a quota:\n%s", out)
	}
}

func TestWhatAFileContainsIsRead(t *testing.T) {
	a := newAPI(t, four)
	unit := "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: QueueUnit\nmetadata: {name: mine, namespace: other}\nspec: {consumerRef: {apiVersion: example.com/v1, kind: Experiment, name: mine}, resource: {cpu: 2}}\n"
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(twoPods), "\n", "\n  ") + "\n"
	code, out, errs := a.runIn(terminal{stdin: roomyTree + "---\n# nothing\n---\n" + list + "---\n" + unit}, "simulate", "-f", "-", "-n", "research", "-o", "json")
	var result struct {
		Jobs    []map[string]any
		Started []any
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || code != 0 || errs != "" || len(result.Jobs) != 2 || len(result.Started) != 2 {
		t.Fatalf("exit status %d, %v, stderr %q\n%s", code, err, errs, out)
	}
	for i, want := range []string{"job/two in research", "mine in other"} {
		if got := fmt.Sprintf("%v in %v", result.Jobs[i]["name"], result.Jobs[i]["namespace"]); got != want || result.Jobs[i]["starts"] != true {
			t.Errorf("job %d: %v", i, result.Jobs[i])
		}
	}
	// Jobs with generateName have one name, and a job that exists counts twice.
	generated := strings.Replace(twoPods, "name: two", "generateName: train-c-", 1)
	name := file(t, generated)
	if _, out, errs := a.run("simulate", "-f", name, "-f", name); !strings.Contains(out, "job/train-c (2)") || !strings.Contains(errs, "job/train-c in namespace research exists") {
		t.Errorf("two jobs of one name:\n%s%s", out, errs)
	}
	if code, out, errs := a.runIn(terminal{stdin: `{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": {"name": "train-c-job-2e7d2c03a9"}, "spec": {"consumerRef": {"apiVersion": "example.com/v1", "kind": "E", "name": "e"}}}`},
		"simulate", "-f", "-"); code != 2 || !strings.Contains(errs, "exists in the cluster") {
		t.Errorf("a unit that exists: exit status %d\n%s%s", code, out, errs)
	}
	// Devices of claims are not counted, because the settings of job-extensions are not known.
	claims := strings.Replace(twoPods, "containers:", "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}], containers:", 1)
	if _, out, errs := a.run("simulate", "-f", file(t, claims)); strings.Contains(out, "InvalidRequest") || !strings.Contains(errs, "devices of ResourceClaims are not counted") && !strings.Contains(errs, "devices.classes") {
		t.Errorf("a job with claims:\n%s%s", out, errs)
	}
	// An unreadable part of a unit affects only this unit.
	a.objects[unitsOf][0]["spec"].(map[string]any)["renewTime"] = "2026-01-01T00:00:00Z"
	a.objects[unitsOf][0]["status"].(map[string]any)["renewTime"] = "2026-01-01T00:00:00Z"
	if _, out, errs := a.run("simulate", "-f", file(t, twoPods)); !strings.Contains(out, "job/two") || !strings.Contains(errs, "is not read completely") {
		t.Errorf("a broken unit:\n%s%s", out, errs)
	}
	delete(a.objects[unitsOf][0]["spec"].(map[string]any), "renewTime")
	delete(a.objects[unitsOf][0]["status"].(map[string]any), "renewTime")
	// The requests of a job may depend on objects that cannot be read.
	a.forbidden["list /limitranges research"] = true
	if _, _, errs := a.run("simulate", "-f", file(t, twoPods)); errs != "You may not read LimitRanges: the requests or priorities of the jobs may differ.\n" {
		t.Errorf("stderr %q", errs)
	}
	shows(t, a, 1, []string{"InvalidRequest", "must be an integer"}, "simulate", "-f", file(t, strings.Replace(twoPods, `"7"`, "high", 1)))
	unmarked := strings.Replace(twoPods, `scheduling.x-k8s.io/suspend: "true", `, "", 1)
	if _, _, errs := a.run("simulate", "-f", file(t, unmarked)); !strings.Contains(errs, "job/two has no mark") {
		t.Errorf("a job without a mark: %q", errs)
	}
	for value, want := range map[string]string{"true": "", "True": `label kube-queue/managed of namespace research is "True" and not "true".`} {
		a.objects["/namespaces"] = nil
		a.add(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "research", "labels": map[string]any{"kube-queue/managed": value}}})
		if _, _, errs := a.run("advise", "-f", file(t, unmarked)); strings.Contains(errs, "mark") != (want != "") || !strings.Contains(errs, want) {
			t.Errorf("a job without a mark in a namespace with the label %s: %q", value, errs)
		}
	}
	a.objects["/namespaces"] = nil
	// Keys that have no effect are described as in the events of the job.
	const suspended = "annotation scheduling.x-k8s.io/suspended has no effect; did you mean annotation scheduling.x-k8s.io/suspend?"
	const quotaName = "annotation kube-queue/quota-name has no effect; set it as a label instead"
	for annotations, want := range map[string]string{
		`scheduling.x-k8s.io/suspended: "true"`:                                         "job/two: Not queued: " + suspended + "\n",
		`scheduling.x-k8s.io/suspended: "true", kube-queue/quota-name: a`:               "job/two: Not queued: " + suspended + "\njob/two: Ignored: " + quotaName + "; " + suspended + "\n",
		`scheduling.x-k8s.io/suspend: "true", kube-queue/quota-name: a`:                 "job/two: Ignored: " + quotaName + "\n",
		`scheduling.x-k8s.io/suspend: "true", kube-queue/expected-run-time-seconds: 1h`: "job/two: Ignored: annotation",
	} {
		for _, command := range []string{"simulate", "advise"} {
			if _, _, errs := a.run(command, "-f", file(t, strings.Replace(twoPods, `scheduling.x-k8s.io/suspend: "true"`, annotations, 1))); !strings.Contains(errs, want) || strings.Contains(errs, "no mark") {
				t.Errorf("%s with %s: %q", command, annotations, errs)
			}
		}
	}
}

func TestWhatCannotBeSimulatedIsAnErrorOfItsOwnStatus(t *testing.T) {
	a := newAPI(t, four)
	for words, text := range map[string]string{
		"no ElasticQuotaTree and no job":                   "# nothing\n",
		"document 2: invalid YAML":                         twoPods + "---\na: b: c\n",
		"the document is not an object":                    "- 1\n",
		"neither a quota tree nor a job":                   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"more than one ElasticQuotaTree":                   oneTree + "---\n" + oneTree,
		`key "kind" already set in map`:                    "kind: Job\nkind: Job\n",
		`unit "slow": spec.resource.cpu: `:                 "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: QueueUnit\nmetadata: {name: slow}\nspec: {resource: {cpu: \"1e-1000000000\"}}\n",
		"PaddleJob, PyTorchJob, Ray":                       "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", // neither Pod nor PodGroup
		`Job (batch/v2) "x" is neither a quota tree nor a`: "apiVersion: batch/v2\nkind: Job\nmetadata: {name: x}\n",
	} {
		says(t, a, 2, []string{words}, "simulate", "-f", file(t, text))
	}
	says(t, a, 2, []string{"no such file"}, "simulate", "-f", "/no/such/file")
	a.objects[treesOf] = nil
	says(t, a, 2, []string{"there is no ElasticQuotaTree"}, "simulate", "-f", file(t, twoPods))
	code, _, errs := a.run("simulate")
	if code != 2 || !strings.Contains(errs, "no file is given") {
		t.Errorf("exit status %d: %s", code, errs)
	}
}
