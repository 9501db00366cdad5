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

func TestAJobStartsWithFewerPodsAndHasAllOfThemWhenItIsStopped(t *testing.T) {
	l := suite.Env(t, "fewer")
	suite.Both(t, enabled)
	// has checks with how many of the ten pods the Job runs or waits, and what the Job and its unit show.
	has := func(unit *schedulingv1alpha1.QueueUnit, pods int64) {
		t.Helper()
		job := l.Object(harness.Jobs, "sweep")
		if parallelism, _, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism"); parallelism != pods {
			t.Errorf("parallelism is %d, want %d", parallelism, pods)
		}
		if completions, _, _ := unstructured.NestedInt64(job.Object, "spec", "completions"); completions != 20 {
			t.Errorf("completions is %d, want 20", completions)
		}
		var admitted []schedulingv1alpha1.AdmittedPodSet
		original, released := "", ""
		if pods < 10 {
			admitted = []schedulingv1alpha1.AdmittedPodSet{{Name: "main", Count: int32(pods)}}
			original, released = "main=10", fmt.Sprintf("main=%d", pods)
		}
		if !slices.Equal(unit.Status.AdmittedPodSets, admitted) {
			t.Errorf("the unit shows %+v, want %+v", unit.Status.AdmittedPodSets, admitted)
		}
		if set := unit.Spec.PodSets[0]; set.Count != 10 || set.MinCount == nil || *set.MinCount != 4 {
			t.Errorf("the unit requests %+v", set)
		}
		annotations := job.GetAnnotations()
		if annotations["kube-queue/original-count"] != original || annotations["kube-queue/admitted-count"] != released {
			t.Errorf("annotations are %v", annotations)
		}
	}
	runs := func(pods int) {
		t.Helper()
		harness.Eventually(t, time.Minute, fmt.Sprintf("the Job has %d pods", pods), func() (bool, string) {
			n := len(l.Pods("sweep"))
			return n == pods, fmt.Sprint(n)
		})
		has(l.WaitForPhase("Job", "sweep", schedulingv1alpha1.PhaseRunning), int64(pods))
	}
	quota := func(cpu string) { l.TreeOf(`{name: fewer, namespaces: [fewer], max: {cpu: "` + cpu + `"}}`) }

	quota("3")
	l.Apply(sweep)
	l.WaitForReason("Job", "sweep", "ExceedsMaxQuota")
	quota("6")
	runs(6)
	if event := l.WaitForEvent("sweep", "Released"); !strings.HasSuffix(event.Message, ", with 6 of 10 pods of pod set main") {
		t.Errorf("the event is %s", event.Message)
	}

	l.PatchQueue("root-fewer", `{"spec":{"stop":"Drain"}}`)
	has(l.WaitForPhase("Job", "sweep", schedulingv1alpha1.PhaseEnqueued), 10)
	if suspended, _, _ := unstructured.NestedBool(l.Object(harness.Jobs, "sweep").Object, "spec", "suspend"); !suspended {
		t.Error("the Job is not suspended")
	}
	l.ExpectFree()

	quota("10")
	l.WaitForTree()
	l.PatchQueue("root-fewer", `{"spec":{"stop":"None"}}`)
	runs(10)
	l.Delete(harness.Jobs, "sweep")
	l.ExpectFree()
}
