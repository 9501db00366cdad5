package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// sweep is a Job of ten pods that starts with at least four of them.
const sweep = `apiVersion: batch/v1
kind: Job
metadata:
  name: sweep
  annotations: {scheduling.x-k8s.io/suspend: "true", kube-queue/min-count: main=4}
spec:
  parallelism: 10
  completions: 20
  template:
    metadata: {annotations: {localcluster.kube-queue.dev/run-time: 1h}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]
`

// fewer is a job that may start with fewer pods.
type fewer struct {
	*testing.T
	*harness.Env
}

// has checks with how many of the ten pods the Job runs or waits, and what it and its unit show.
func (f fewer) has(unit *schedulingv1alpha1.QueueUnit, pods int64) {
	f.Helper()
	job := f.Object(harness.Jobs, "sweep")
	if parallelism, _, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism"); parallelism != pods {
		f.Errorf("parallelism is %d, want %d", parallelism, pods)
	}
	if completions, _, _ := unstructured.NestedInt64(job.Object, "spec", "completions"); completions != 20 {
		f.Errorf("completions is %d, want 20", completions)
	}
	var admitted []schedulingv1alpha1.AdmittedPodSet
	original, released := "", ""
	if pods < 10 {
		admitted = []schedulingv1alpha1.AdmittedPodSet{{Name: "main", Count: int32(pods)}}
		original, released = "main=10", fmt.Sprintf("main=%d", pods)
	}
	if !slices.Equal(unit.Status.AdmittedPodSets, admitted) {
		f.Errorf("the unit shows %+v, want %+v", unit.Status.AdmittedPodSets, admitted)
	}
	if set := unit.Spec.PodSets[0]; set.Count != 10 || set.MinCount == nil || *set.MinCount != 4 {
		f.Errorf("the unit requests %+v", set)
	}
	annotations := job.GetAnnotations()
	if annotations["kube-queue/original-count"] != original || annotations["kube-queue/admitted-count"] != released {
		f.Errorf("annotations are %v", annotations)
	}
}

// runs waits until the Job runs with some of its pods.
func (f fewer) runs(pods int) {
	f.Helper()
	harness.Eventually(f.T, time.Minute, fmt.Sprintf("the Job has %d pods", pods), func() (bool, string) {
		n := len(f.Pods("sweep"))
		return n == pods, fmt.Sprint(n)
	})
	f.has(f.WaitForPhase("Job", "sweep", schedulingv1alpha1.PhaseRunning), int64(pods))
}

func aJobStartsWithFewerPodsAndHasAllOfThemWhenItIsStopped(t *testing.T, l *harness.Env) {
	f := fewer{t, l}
	quota := func(cpu string) { f.TreeOf(`{name: fewer, namespaces: [fewer], max: {cpu: "` + cpu + `"}}`) }

	quota("3")
	f.Apply(sweep)
	f.WaitForReason("Job", "sweep", "ExceedsMaxQuota")
	quota("6")
	f.runs(6)
	if event := f.WaitForEvent("sweep", "Released"); !strings.HasSuffix(event.Message, ", with 6 of 10 pods of pod set main") {
		t.Errorf("the event is %s", event.Message)
	}

	f.PatchQueue("root-fewer", `{"spec":{"stop":"Drain"}}`)
	f.has(f.WaitForPhase("Job", "sweep", schedulingv1alpha1.PhaseEnqueued), 10)
	if suspended, _, _ := unstructured.NestedBool(f.Object(harness.Jobs, "sweep").Object, "spec", "suspend"); !suspended {
		t.Error("the Job is not suspended")
	}
	f.ExpectFree()

	quota("10")
	l.WaitForTree()
	f.PatchQueue("root-fewer", `{"spec":{"stop":"None"}}`)
	f.runs(10)
	f.Delete(harness.Jobs, "sweep")
	f.ExpectFree()
}

// A small job of a greater priority takes the place of one that runs with fewer pods, which then gets what is left.
func aJobThatRunsWithFewerPodsIsPreempted(t *testing.T, l *harness.Env) {
	f := fewer{t, l}
	f.TreeOf(`{name: fewer2, namespaces: [fewer2], max: {cpu: "6"}}`)
	f.Apply(sweep)
	f.runs(6)
	f.PatchQueue("root-fewer2", `{"spec":{"preemption":{"withinQueue":"LowerPriority","minRunTime":"0s"}}}`)
	f.Apply(job{name: "urgent", cpu: "1", runs: harness.UntilFinished, annotations: `scheduling.x-k8s.io/priority: "10"`}.String())
	f.WaitForEvent("sweep", "Preempted")
	f.WaitForPhase("Job", "urgent", schedulingv1alpha1.PhaseRunning)
	f.runs(5)
	f.Finish(harness.Jobs, "urgent")
	f.WaitForPhase("Job", "urgent", schedulingv1alpha1.PhaseSucceeded)
	f.has(f.Unit("Job", "sweep"), 5)
	f.Delete(harness.Jobs, "sweep")
	f.ExpectFree()
}
