package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/require"
)

const (
	sweep = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: sweep, annotations: {scheduling.x-k8s.io/suspend: \"true\", kube-queue/min-count: main=4}}\n" +
		"spec: {parallelism: 10, completions: 100, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]}}}\n"
	rayJob = `apiVersion: ray.io/v1
kind: RayJob
metadata: {name: tune, namespace: other, annotations: {scheduling.x-k8s.io/suspend: "true", kube-queue/min-count: workers=1}}
spec:
  entrypoint: python tune.py
  shutdownAfterJobFinishes: true
  rayClusterSpec:
    headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: ray, resources: {requests: {cpu: 1}}}]}}}
    workerGroupSpecs:
    - {groupName: workers, replicas: 3, minReplicas: 1, maxReplicas: 3, rayStartParams: {}, template: {spec: {containers: [{name: worker, image: ray, resources: {requests: {cpu: 2}}}]}}}
`
)

// startIn is an estimate in a review.
func startIn(wait time.Duration) map[string]any {
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	return map[string]any{"time": at(wait), "earliest": at(wait / 2), "latest": at(2 * wait)}
}

// advisor answers questions about new units by the names of their jobs.
func advisor(answers map[string]map[string]any) func(map[string]any) (any, *metav1.Status) {
	return func(spec map[string]any) (any, *metav1.Status) {
		unit, _ := spec["newUnit"].(map[string]any)
		ref, _ := unit["consumerRef"].(map[string]any)
		answer := answers[ref["name"].(string)]
		answer["observedTime"] = now.Format(metav1.RFC3339Micro)
		return answer, nil
	}
}

func TestAdviceIsARowForEachVariantOfAJob(t *testing.T) {
	a := newAPI(t, four)
	a.answer["queueunitreviews"] = advisor(map[string]map[string]any{
		"sweep": {"phase": "Dequeued", "queue": "company-research", "startPods": 6,
			"withAllPods": map[string]any{"reason": "QuotaExceeded", "message": "quota is used", "start": startIn(2 * time.Hour)}},
		"tune": {"phase": "Enqueued", "queue": "company-research", "position": 3, "waiting": 5, "reason": "QuotaExceeded", "message": "no room"},
		"two": {"phase": "Enqueued", "reason": "ExceedsMaxQuota", "message": "can never fit",
			"wouldAdmit": []any{map[string]any{"type": "LowerRequest", "message": "request at most 500m cpu"}, map[string]any{"type": "RaiseQuota", "message": "raise"}}},
	})
	sample, err := os.ReadFile(filepath.Join(samples, "advise.txt"))
	require.NoError(t, err)
	_, output, _ := strings.Cut(string(sample), "\n")
	expect(t, a, 0, output, `rayjob/tune: pod set "workers" always starts with all its pods
`, "advise", "-f", file(t, sweep+"---\n"+rayJob), "-f", file(t, twoPods))
	require.Says(t, "the requests", strings.Join(a.requests, "\n"), "ASK queueunitreviews research", `"minCount":4`, `"count":10`, `"priority":7`, `"preemptible":false`, "ASK queueunitreviews other")
	code, out, _ := a.run("advise", "-f", file(t, sweep), "-o", "json")
	var result struct{ Jobs []map[string]any }
	if err := json.Unmarshal([]byte(out), &result); err != nil || code != 0 || len(result.Jobs) != 1 || result.Jobs[0]["status"].(map[string]any)["startPods"] != 6.0 {
		t.Errorf("exit status %d, %v\n%s", code, err, out)
	}
	shows(t, a, 0, []string{"never: InvalidRequest", "must be an integer"}, "advise", "-f", file(t, strings.Replace(twoPods, `"7"`, "high", 1)))
	session := a.assistant()
	if answer, failed := call(t, session, "advise", map[string]any{"manifests": sweep}); failed || !strings.Contains(answer, `"starts":"now, with 6 pods"`) {
		t.Errorf("an assistant gets %s", answer)
	}
}

func TestWithoutAdviceTheErrorSaysWhy(t *testing.T) {
	a := newAPI(t, four)
	for words, text := range map[string]string{
		"the files have no job":                   "# nothing\n",
		"to try it, use simulate":                 oneTree,
		"the kinds are JAXJob, Job":               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"reviews are off in this cluster; only":   twoPods,
		`Job (batch/v2) "x" is neither a quota t`: "apiVersion: batch/v2\nkind: Job\nmetadata: {name: x}\n",
	} {
		says(t, a, 1, []string{words}, "advise", "-f", file(t, text))
	}
	if code, _, errs := a.run("advise"); code != 1 || !strings.Contains(errs, "no file is given") {
		t.Errorf("exit status %d: %s", code, errs)
	}
	for words, said := range map[string]string{
		"job/two in namespace research: kube-queue-controller has answered many questions about new units; ask again in 40 s": "kube-queue-controller has answered many questions about new units; ask again in 40 s",
		"is older than this plugin and does not know new units; only":                                                         `QueueUnit "" does not exist in namespace "research", or has ended`,
		`you may not list QueueUnits in namespace "research"`:                                                                 `you may not list QueueUnits in namespace "research"`,
	} {
		a.answer["queueunitreviews"] = func(map[string]any) (any, *metav1.Status) { return nil, refusal(said) }
		says(t, a, 1, []string{words}, "advise", "-f", file(t, twoPods))
	}
	a.forbidden["create queueunitreviews"] = true
	says(t, a, 1, []string{`you may not create queueunitreviews in namespace "research"; only`, "or set -n to a namespace"}, "advise", "-f", file(t, twoPods))
}
