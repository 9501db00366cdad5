package command

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/require"
)

const whyTrainC = `Job train-c waits: MaxJobs
  job limit reached in quota company/research: requested 1 job, used 2 of max 2 (kube-queue/max-jobs)

Unit:      research/train-c-job-2e7d2c03a9
Queue:     company-research, policy RoundRobin
Position:  2 of 2
Quota:     company/research
Requests:  500m cpu
Priority:  0

It lacks:
  QUOTA              RESOURCE   REQUESTED   USED   LIMIT   MISSING
  company/research   jobs               1      2   max 2         1

Ahead of it:
  NAMESPACE   JOB           PHASE      PRIORITY   REQUESTS   AGE
  other       tfjob/first   Enqueued   5          1 cpu      30s

What it lacks is held by:
  QUOTA              UNITS   USED
  company/research       2   2 jobs

Units that hold most of it:
  NAMESPACE   JOB           PHASE     PRIORITY   REQUESTS   AGE
  research    job/train-a   Running   0          2 cpu      40s
  other       tfjob/big     Running   5          3 cpu      38s

What would admit it:
  - the job starts when one of the jobs that hold the quota has ended
`

func TestWhyNamesAJobInEachWay(t *testing.T) {
	a := newAPI(t, four)
	// The name of a unit follows from the job.
	a.objects[unitsOf][0]["metadata"].(map[string]any)["name"] = unitName("train-c", "c")
	want := strings.ReplaceAll(whyTrainC, "train-c-job-2e7d2c03a9", unitName("train-c", "c"))
	for _, args := range [][]string{{"train-c"}, {"job/train-c"}, {"job.batch/train-c"}, {"jobs", "train-c"}, {unitName("train-c", "c")}, {"qu/" + unitName("train-c", "c")}} {
		expect(t, a, 0, want, down, append([]string{"why"}, args...)...)
	}
	expect(t, a, 0, want, down, "why", "-n", "research", "train-c")
	if _, out, _ := a.run("why", "train-c", "--no-headers"); strings.Contains(out, "MISSING") || strings.Contains(out, "AGE") || !strings.Contains(out, "It lacks:\n  company/research   jobs   1   2   max 2   1\n") {
		t.Errorf("tables with titles:\n%s", out)
	}
	// The TFJob is gone, but its unit is there.
	if code, out, _ := a.run("why", "tfjobs.kubeflow.org/first", "-n", "other"); code != 0 || !strings.HasPrefix(out, "TFJob first waits: MaxJobs\n") || !strings.Contains(out, "Position:  1 of 2") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
	if code, out, _ := a.run("why", "train-a"); code != 0 || !strings.HasPrefix(out, "Job train-a runs\n") || strings.Contains(out, "lacks") {
		t.Errorf("a job that runs, exit status %d:\n%s", code, out)
	}
}

func TestWhyOfATenantShowsWhatTheTenantMayRead(t *testing.T) {
	a := newAPI(t, four)
	for _, forbidden := range []string{"list " + unitsOf, "get " + queuesOf + " kube-queue", "list " + treesOf + " kube-system"} {
		a.forbidden[forbidden] = true
	}
	code, out, errs := a.run("why", "train-c")
	if code != 0 || errs != down+"You may not read the Queue, units of all namespaces, the quota tree, so position and holders may be missing.\n" {
		t.Errorf("exit status %d, stderr %q", code, errs)
	}
	for _, secret := range []string{"other", "first", "big", "Position", "lacks"} {
		if strings.Contains(out, secret) {
			t.Errorf("it shows %q:\n%s", secret, out)
		}
	}
	require.Says(t, "why", out, "waits: MaxJobs", "What would admit it:")
}

func TestWhyPrefersTheAnswerOfWhoDecides(t *testing.T) {
	a := newAPI(t, four)
	a.answer["queueunitreviews"] = func(spec map[string]any) (any, *metav1.Status) {
		if spec["unit"] != "train-c-job-2e7d2c03a9" {
			return nil, refusal("QueueUnit \"x\" does not exist")
		}
		return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z", "phase": "Enqueued", "queue": "company-research", "quota": "company/research", "policy": "Block", "priority": 3,
			"requests": map[string]any{"cpu": "500m"}, "reason": "NotAtFront", "message": "another unit is ahead", "position": 5, "waiting": 9, "aheadHidden": 4, "until": "2026-01-01T13:00:00Z",
			"holders":      []any{map[string]any{"quota": "company/other", "units": 2, "used": map[string]any{"cpu": "3"}, "borrowed": map[string]any{"cpu": "1"}, "unqueued": map[string]any{"cpu": "2"}}},
			"holdingUnits": []any{map[string]any{"namespace": "other", "name": "long-job-2e7d2c03a9", "kind": "Job", "phase": "Running", "endsBefore": "2026-01-01T13:00:00Z"}},
			"wouldAdmit": []any{map[string]any{"type": "EndUnits", "message": "the end of 2 units", "hiddenUnits": 1, "units": []any{map[string]any{"namespace": "research", "name": "u"}}, "command": "kubectl delete x"},
				map[string]any{"type": "EndUnits", "message": "other/v-job-2e7d2c03a9, research/w-job-2e7d2c03a9 and 1 more end", "units": []any{map[string]any{"namespace": "other", "name": "v-job-2e7d2c03a9", "kind": "Job"},
					map[string]any{"namespace": "research", "name": "w-job-2e7d2c03a9", "kind": "Job"}, map[string]any{"namespace": "research", "name": "w-job-2e7d2c03a9-job-2e7d2c03a9", "kind": "Job"}}},
				map[string]any{"type": "EndUnits", "message": "2 units that you may not list end", "hiddenUnits": 2}},
		}, nil
	}
	expect(t, a, 0, `Job train-c waits: NotAtFront
  another unit is ahead

Unit:      research/train-c-job-2e7d2c03a9
Queue:     company-research, policy Block
Position:  5 of 9
Quota:     company/research
Requests:  500m cpu
Priority:  3
Until:     2026-01-01T13:00:00Z at the latest

Ahead of it:
  4 units in namespaces that you cannot view

What it lacks is held by:
  QUOTA           UNITS   USED    BORROWED   UNQUEUED
  company/other       2   3 cpu   1 cpu      2 cpu

  UNQUEUED: what pods outside the queue use

Units that hold most of it:
  NAMESPACE   JOB        PHASE     PRIORITY   REQUESTS   AGE   ENDS-BEFORE
  other       job/long   Running   0                           2026-01-01T13:00:00Z

  ENDS-BEFORE: when the job has run for its maximum execution time, and is stopped

What would admit it:
  - the end of 2 units
      qu/u
      1 unit in namespaces that you cannot view
      kubectl delete x
  - job/v (namespace other), job/w and 1 more end
      job/w-job-2e7d2c03a9
  - 2 units that you may not list end
`, "", "why", "train-c")
	if len(a.requests) != 1 || a.requests[0] != `ASK queueunitreviews research {"unit":"train-c-job-2e7d2c03a9"}` {
		t.Errorf("asked %q", a.requests)
	}
	shows(t, a, 0, []string{"kind: QueueUnitReview\n", "position: 5\n"}, "why", "train-c", "-o", "yaml")
	// The objects show the rest.
	if code, out, errs := a.run("why", "train-a"); code != 0 || !strings.HasPrefix(out, "Job train-a runs\n") || errs != "QueueUnit \"x\" does not exist; this is what the objects show.\n" {
		t.Errorf("exit status %d\n%s%s", code, out, errs)
	}
	if code, out, errs := a.run("why", "old"); code != 0 || !strings.HasPrefix(out, "Job old has succeeded\n") || errs != "" {
		t.Errorf("a job that has ended, exit status %d\n%s%s", code, out, errs)
	}
	a.answer["quotareviews"] = func(map[string]any) (any, *metav1.Status) { return nil, refusal("no quota is in force") }
	says(t, a, 1, []string{"error: no quota is in force\n"}, "tree")
}

// Neither affects admission, so kube-queue-controller does not answer it.
func TestWhyRepeatsWhatAUnitThatHoldsQuotaSays(t *testing.T) {
	unit := func(name, phase string, status map[string]any) map[string]any {
		status["phase"] = phase
		return map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": name, "namespace": "research"},
			"spec": map[string]any{"consumerRef": map[string]any{"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "job-of-" + name}}, "status": status}
	}
	a := newAPI(t, "")
	a.add(unit("no-node", "Dequeued", map[string]any{"conditions": []any{map[string]any{"type": "PodsScheduled", "status": "False", "reason": "PodsUnschedulable", "message": "3 Insufficient cpu."}}}))
	a.add(unit("scheduled", "Dequeued", map[string]any{"conditions": []any{map[string]any{"type": "PodsScheduled", "status": "True", "reason": "x", "message": "x"}}}))
	a.add(unit("remains", "Running", map[string]any{"reason": "PodsRemain", "message": "its RayCluster exists"}))
	// The unit was read before it was released.
	a.add(unit("read-before", "Enqueued", map[string]any{"reason": "QuotaExceeded", "message": "insufficient cpu"}))
	phases := map[any]string{"no-node": "Dequeued", "scheduled": "Dequeued", "remains": "Running", "read-before": "Running"}
	answering := func(spec map[string]any) (any, *metav1.Status) {
		return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z", "phase": phases[spec["unit"]]}, nil
	}
	for name, want := range map[string]string{
		"no-node":     "RayJob job-of-no-node is admitted, and its pods do not run yet: PodsUnschedulable\n  3 Insufficient cpu.\n",
		"scheduled":   "RayJob job-of-scheduled is admitted, and its pods do not run yet\n\n",
		"remains":     "RayJob job-of-remains has ended, and still holds quota: PodsRemain\n  its RayCluster exists\n",
		"read-before": "RayJob job-of-read-before runs\n\n",
	} {
		a.answer["queueunitreviews"] = answering
		if code, out, errs := a.run("why", "qu/"+name); code != 0 || errs != "" || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit status %d\n%s%s", name, code, out, errs)
		}
		delete(a.answer, "queueunitreviews")
		if code, out, errs := a.run("why", "qu/"+name); code != 0 || errs != down || name != "read-before" && !strings.HasPrefix(out, want) {
			t.Errorf("%s, of the objects: exit status %d\n%s%s", name, code, out, errs)
		}
	}
}

// A sum can exceed a quota because of pods that the operator adds.
func TestWhyListsThePodsOfAJob(t *testing.T) {
	a := newAPI(t, `
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata: {name: fits, namespace: research}
spec:
  consumerRef: {apiVersion: ray.io/v1, kind: RayJob, name: fits-exactly}
  resource: {cpu: 4500m, memory: "8209715200"}
  podSets:
  - {name: head, count: 1, requests: {cpu: "2", memory: 8G}}
  - {name: workers, count: 2, minCount: 1, requests: {cpu: "1"}}
  - {name: submitter, count: 1, requests: {cpu: 500m, memory: 200Mi}}
status: {phase: Enqueued, reason: ExceedsMaxQuota, message: can never fit}
`)
	_, out, _ := a.run("why", "qu/fits")
	require.Says(t, "why", out, "Requests:  4500m cpu, 8017300Ki memory\n", `
Its pods, with their init containers, sidecars and overhead:
  POD-SET     PODS   REQUESTS-EACH
  head           1   2 cpu, 8G memory
  workers      1-2   1 cpu
  submitter      1   500m cpu, 200Mi memory
`)
}

const grows = `
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata: {name: grow-job-1, namespace: research}
spec: {consumerRef: {apiVersion: batch/v1, kind: Job, name: grow}}
status: {phase: Running, growth: Gate}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata: {name: grow-growth-job-2, namespace: research}
spec: {growth: true, consumerRef: {apiVersion: batch/v1, kind: Job, name: grow}, podSets: [{name: main, count: 3}]}
status: {phase: Running}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata: {name: grow-growth-job-3, namespace: research}
spec: {growth: true, consumerRef: {apiVersion: batch/v1, kind: Job, name: grow}, podSets: [{name: main, count: 2}]}
status: {phase: Enqueued, reason: QuotaExceeded}
---
apiVersion: v1
kind: Pod
metadata:
  name: grow-x
  namespace: research
  labels: {kube-queue/gated: "true"}
  annotations: {kube-queue/growth: main}
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: grow, uid: "1", controller: true}]
spec: {schedulingGates: [{name: scheduling.x-k8s.io/kube-queue}]}
`

func TestWhyOfAGrowingJobNamesTheUnitThatWaits(t *testing.T) {
	a := newAPI(t, grows)
	for job, verdict := range map[string]string{"job/grow": "Job grow runs\n", "pod/grow-x": "pod/grow-x has no QueueUnit\n"} {
		if _, out, errs := a.run("why", job); !strings.HasPrefix(out, verdict+"  Job grow waits for quota for 2 more pods: ask why qu/grow-growth-job-3\n") {
			t.Errorf("why %s:\n%s%s", job, out, errs)
		}
	}
	if _, out, _ := a.run("__complete", "why", "job/grow-"); strings.Count(out, "job/grow-growth") != 1 {
		t.Errorf("it completes with\n%s", out)
	}
	if _, out, errs := a.run("why", "job/grow-growth"); !strings.Contains(out, "grow-growth-job-3") || !strings.Contains(errs, `2 units are named "grow-growth"; this is grow-growth-job-3, the only one that waits.`) {
		t.Errorf("why does not say which:\n%s%s", out, errs)
	}
	a.objects[unitsOf][2]["status"] = map[string]any{"phase": "Running"}
	says(t, a, 1, []string{`2 units in namespace research are named "grow-growth"`, "grow-growth-job-2", "grow-growth-job-3"}, "why", "job/grow-growth")
}

func TestWhyOfAGroupWithoutAUnitLooksAtItsPods(t *testing.T) {
	a := newAPI(t, "{apiVersion: v1, kind: Namespace, metadata: {name: research}}")
	for i, want := range []string{"the group has 1 of its 2 pods", "waits for job-extensions to create its unit"} {
		a.add(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": fmt.Sprint("w-", i), "namespace": "research", "labels": map[string]any{"kube-queue/gated": "true", "kube-queue/pod-group": "workers"},
			"annotations": map[string]any{"scheduling.x-k8s.io/suspend": "true", "kube-queue/pod-group-size": "2"}}, "spec": map[string]any{"schedulingGates": []any{map[string]any{"name": "scheduling.x-k8s.io/kube-queue"}}}})
		shows(t, a, 0, []string{want}, "why", "pod/w-0")
		for _, group := range []string{"workers", "podgroup/workers"} {
			says(t, a, 1, []string{"podgroup/workers has no QueueUnit", want}, "why", group)
		}
	}
	a.add(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": "u", "namespace": "research"},
		"spec": map[string]any{"consumerRef": map[string]any{"apiVersion": "kube-queue.dev/v1", "kind": "PodGroup", "name": "workers"}}})
	shows(t, a, 0, []string{"ask why podgroup/workers"}, "why", "pod/w-0")
}

// failure is an answer of the API server that does not answer the question.
func failure(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: code, Reason: reason, Status: "Failure", Message: message}
}

// refusal is the answer of a webhook that refuses.
func refusal(why string) *metav1.Status {
	return failure(403, metav1.StatusReasonForbidden, "admission webhook \"x\" denied the request: "+why)
}

func TestWhyNobodyAnswersIsSaid(t *testing.T) {
	answers := func(status *metav1.Status) func(*api) {
		return func(a *api) {
			a.answer["queueunitreviews"] = func(map[string]any) (any, *metav1.Status) { return nil, status }
		}
	}
	for _, c := range []struct {
		why     string
		prepare func(*api)
	}{
		{"kube-queue is not installed in this cluster, or is too old for this plugin: an administrator must install or upgrade it", func(a *api) {
			a.answer["older"] = func(map[string]any) (any, *metav1.Status) { return nil, nil }
		}},
		{"you may not create queueunitreviews in namespace \"research\"", func(a *api) { a.forbidden["create queueunitreviews"] = true }},
		{"kube-queue-controller does not answer", answers(failure(500, metav1.StatusReasonInternalError, "failed calling webhook"))},
		{"reviews are off in this cluster", answers(failure(422, metav1.StatusReasonInvalid, "is invalid: status.observedTime: Required value"))},
		{"kube-queue-controller cannot verify yet that the API server sent the question",
			answers(refusal("kube-queue-controller cannot verify that the API server sent this review; try again in some seconds"))},
		{"kube-queue-controller cannot verify yet that the API server sent the question", answers(failure(403, metav1.StatusReasonForbidden,
			"queueunitreviews.visibility.kube-queue.dev \"review-x\" is forbidden: policy 'kube-queue-reviews' with binding 'kube-queue-reviews' denied request: failed to configure binding"))},
		{"kube-queue-controller has just started", answers(refusal("kube-queue-controller has just started and has not listed"))},
	} {
		a := newAPI(t, four)
		c.prepare(a)
		expect(t, a, 0, whyTrainC, c.why+"; this is what the objects show.\n", "why", "train-c")
	}
}

func TestAJobThatCannotBeFoundIsAnError(t *testing.T) {
	a := newAPI(t, four)
	a.add(map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"name": "twice", "namespace": "research"}})
	a.add(map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "twice", "namespace": "research"}})
	says(t, a, 1, []string{`"twice" may be any of job.batch/twice, tfjob.kubeflow.org/twice`}, "why", "twice")
	says(t, a, 1, []string{`no job or unit "trian-c" in namespace research; did you mean "train-c"?`}, "why", "trian-c")
	says(t, a, 1, []string{`no job or unit "job/none" in namespace research`}, "why", "job/none")
	says(t, a, 1, []string{`unit "train-c-job-2e7d2c03aa" does not exist`, `did you mean "train-c-job-2e7d2c03a9"?`}, "why", "qu/train-c-job-2e7d2c03aa")
	says(t, a, 1, []string{`namespace "rsearch" does not exist`, `did you mean "research"?`}, "why", "train-c", "-n", "rsearch")
	says2(t, a, "expected one job", "why")
	for _, u := range []string{"research", "research"} { // two units of jobs with one name
		a.add(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": "same-" + string(rune('a'+len(a.objects[unitsOf]))), "namespace": u},
			"spec": map[string]any{"consumerRef": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "same"}}})
	}
	says(t, a, 1, []string{`2 units in namespace research are named "same"`, "name one of these units"}, "why", "same")
}

func TestAJobWithoutAUnitIsExplained(t *testing.T) {
	a := newAPI(t, "")
	job := func(name string, annotations, labels map[string]any, suspend bool) {
		a.add(map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": name, "namespace": "research", "annotations": annotations, "labels": labels},
			"spec": map[string]any{"suspend": suspend}})
	}
	mark := map[string]any{"scheduling.x-k8s.io/suspend": "true"}
	job("unmarked", nil, nil, false)
	job("opted-out", map[string]any{"scheduling.x-k8s.io/suspend": "false"}, nil, true)
	job("kueue", mark, map[string]any{"kueue.x-k8s.io/queue-name": "q"}, true)
	job("marked", mark, nil, true)
	job("early", mark, nil, false)
	job("suspended", nil, nil, true)
	a.add(map[string]any{"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "e", "namespace": "research"}, "reason": "QueueUnitRefused", "message": "the quota of objects is full",
		"source": map[string]any{"component": "job-extensions"}, "lastTimestamp": "2026-01-01T11:00:00Z"})
	a.add(map[string]any{"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "f", "namespace": "research"}, "reason": "Other", "message": "of somebody else",
		"source": map[string]any{"component": "job-controller"}, "lastTimestamp": "2026-01-01T11:30:00Z"})
	for name, words := range map[string]string{
		"unmarked": "it has no mark; a job is queued if it is created with the annotation", "opted-out": "to queue it, set the annotation",
		"kueue": "assigns the job to another queue", "marked": "waits for job-extensions to create its unit", "early": "already running",
		"suspended": "that is a mark only if its kind is in --enabled-extensions",
	} {
		code, out, errs := a.run("why", "job/"+name)
		if code != 0 || errs != "" || !strings.HasPrefix(out, "job.batch/"+name+" has no QueueUnit\n") || !strings.Contains(out, words) {
			t.Errorf("%s: exit status %d\n%s%s", name, code, out, errs)
		}
		require.Says(t, name, out, "Last event: QueueUnitRefused: the quota of objects is full")
	}
	a.forbidden["list /events research"] = true
	if code, out, _ := a.run("why", "marked"); code != 0 || strings.Contains(out, "event") {
		t.Errorf("without the right to list events, exit status %d:\n%s", code, out)
	}
}
