// Package ray tests that RayJobs are evicted for others, with the real KubeRay.
package ray

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{Operators: []string{"kuberay"}, NodeGPUs: 1, PodRunTime: harness.UntilFinished},
		func(s *harness.Suite) { suite = s })
}

// The unchanged manifests of a user: one GPU, three development jobs and a production job.
func TestAProductionJobGetsTheOnlyGPUFromADevelopmentJob(t *testing.T) {
	l := suite.Env(t, "default")
	suite.Both(t, "rayjob")
	l.ApplyAsIs(l.Read("one-gpu-tree.yaml"))
	l.PatchQueue("root-team", `{"spec":{"preemption":{"withinQueue":"LowerPriority"}}}`)
	var priorities, manifests []string
	for manifest := range strings.SplitSeq(l.Read("rayjob-priority.yaml"), "\n---\n") {
		if strings.Contains(manifest, "kind: PriorityClass") {
			priorities = append(priorities, manifest)
		} else {
			manifests = append(manifests, manifest)
		}
	}
	l.ApplyAsIs(strings.Join(priorities, "\n---\n"))
	t.Cleanup(func() {
		for _, name := range []string{"prod-priority", "dev-priority"} {
			harness.Must(t, l.Kube.SchedulingV1().PriorityClasses().Delete(context.Background(), name, metav1.DeleteOptions{}))
		}
	})
	create := func(manifest string) string {
		name := l.Create(manifest)
		l.Patch(harness.RayJobs, name, `{"metadata":{"annotations":{"`+harness.RunTime+`":"`+harness.UntilFinished.String()+`"}}}`)
		return name
	}
	var devs []string
	for _, manifest := range manifests[:3] {
		name := create(manifest)
		l.WaitForUnit("RayJob", name)
		devs = append(devs, name)
	}
	first := l.WaitForPhase("RayJob", devs[0], v1alpha1.PhaseRunning)
	prod := create(manifests[3])

	// No job is evicted in its first 30 s.
	harness.Eventually(t, 2*time.Minute, devs[0]+" is preempted", func() (bool, string) {
		return len(l.Events(devs[0], "Preempted")) > 0, "there is no event"
	})
	l.WaitForPhase("RayJob", prod, v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning)
	if clusters, pods := l.RayClustersOf(devs[0]), l.Pods(devs[0]); len(clusters)+len(pods) > 0 {
		t.Errorf("prod was released while dev has clusters %v and %d pods", clusters, len(pods))
	}
	l.WaitForPhase("RayJob", prod, v1alpha1.PhaseRunning)
	if suspended := l.Object(harness.RayJobs, devs[0]).Object["spec"].(map[string]any)["suspend"]; suspended != true {
		t.Errorf("suspend of dev is %v", suspended)
	}
	waits := l.WaitForPhase("RayJob", devs[0], v1alpha1.PhaseEnqueued)
	if !waits.Spec.SubmissionTime.Equal(first.Spec.SubmissionTime) {
		t.Errorf("dev was submitted at %v, before its eviction at %v", waits.Spec.SubmissionTime, first.Spec.SubmissionTime)
	}

	l.Finish(harness.RayJobs, prod)
	l.WaitForPhase("RayJob", prod, v1alpha1.PhaseSucceeded)
	for i, dev := range devs { // the evicted one is at the front again
		unit := l.WaitForPhase("RayJob", dev, v1alpha1.PhaseRunning)
		if want := []int32{2, 1, 1}[i]; unit.Status.Attempts != want {
			t.Errorf("%s was released %d times, want %d", dev, unit.Status.Attempts, want)
		}
		l.Finish(harness.RayJobs, dev)
		l.WaitForPhase("RayJob", dev, v1alpha1.PhaseSucceeded)
	}
}

// rayJob is a RayJob with a head and a worker of 1 cpu each. It is not shut down when it has ended.
func rayJob(name string) string {
	return fmt.Sprintf(`
apiVersion: ray.io/v1
kind: RayJob
metadata:
  name: %s
  annotations: {scheduling.x-k8s.io/suspend: "true", %s: 1s}
spec:
  entrypoint: python train.py
  submissionMode: HTTPMode
  rayClusterSpec:
    rayVersion: 2.52.0
    headGroupSpec:
      rayStartParams: {}
      template: {spec: {containers: [{name: head, image: ray, resources: {requests: {cpu: "1"}}}]}}
    workerGroupSpecs:
    - groupName: small
      replicas: 1
      minReplicas: 1
      maxReplicas: 1
      rayStartParams: {}
      template: {spec: {containers: [{name: worker, image: ray, resources: {requests: {cpu: "1"}}}]}}
---
`, name, harness.RunTime)
}

// A RayJob without shutdownAfterJobFinishes keeps its cluster and its quota after it has ended. An event says so.
// With the administrator's setting, it does not keep them.
func TestTheClusterOfAnEndedRayJobKeepsItsQuotaUnlessItIsShutDown(t *testing.T) {
	l := suite.Env(t, "ended")
	_, extensions := suite.Both(t, "rayjob")
	l.TreeOf(`{name: ended, namespaces: [ended], max: {cpu: "2"}}`)
	l.Apply(rayJob("keeps"))
	l.WaitForReason("RayJob", "keeps", wellknown.ReasonPodsRemain)
	event := l.WaitForEvent("keeps", "QuotaKept")
	clusters := l.RayClustersOf("keeps")
	if len(clusters) != 1 || event.Type != "Warning" || !strings.Contains(event.Message, clusters[0]) {
		t.Fatalf("its clusters are %v, and the event is %s %s", clusters, event.Type, event.Message)
	}
	extensions.Stop()
	suite.Program(t, harness.Extensions, "--enabled-extensions=rayjob", "--shut-down-ray-clusters").Start()
	l.Apply(rayJob("shuts-down"))
	l.WaitForReason("RayJob", "shuts-down", wellknown.ReasonQuotaExceeded)
	harness.Must(t, l.Dynamic.Resource(harness.RayClusters).Namespace(l.Namespace).Delete(t.Context(), clusters[0], metav1.DeleteOptions{}))
	l.WaitForPhase("RayJob", "keeps", v1alpha1.PhaseSucceeded)
	l.WaitForPhase("RayJob", "shuts-down", v1alpha1.PhaseSucceeded)
	if left := l.RayClustersOf("shuts-down"); len(left) > 0 || len(l.Events("shuts-down", "QuotaKept")) > 0 {
		t.Errorf("its clusters are %v", left)
	}
	if got := len(l.Events("keeps", "QuotaKept")); got != 1 {
		t.Errorf("%d events QuotaKept were written, want one", got)
	}
	l.ExpectFree()
}

// KubeRay removes its finalizer only when the data of the cluster is gone from Redis, which may be never.
func TestADeletedRayClusterWithoutPodsGivesItsQuotaBack(t *testing.T) {
	l := suite.Env(t, "finalizer")
	suite.Both(t, "raycluster,job")
	l.Tree(`{cpu: "2"}`)
	l.Apply(harness.RayCluster{Name: "kept", Workers: 1, Least: 1, Most: 1, CPU: "1"}.String()) // its head requests 1 CPU with the autoscaler
	l.WaitForPhase("RayCluster", "kept", v1alpha1.PhaseRunning)
	l.Patch(harness.RayClusters, "kept", `{"metadata":{"finalizers":["example.com/keep"]}}`)
	defer l.Patch(harness.RayClusters, "kept", `{"metadata":{"finalizers":null}}`)
	l.Delete(harness.RayClusters, "kept")
	l.Apply(harness.Job{Name: "next", CPU: "2", Runs: time.Second}.String())
	l.WaitForReason("Job", "next", wellknown.ReasonQuotaExceeded)
	harness.Must(t, l.Kube.CoreV1().Pods(l.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}))
	l.WaitForPhase("Job", "next", v1alpha1.PhaseSucceeded)
	unit := l.WaitForPhase("RayCluster", "kept", v1alpha1.PhaseFailed)
	if end := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionFinished); end == nil || !strings.Contains(end.Message, "example.com/keep") {
		t.Errorf("its unit shows %+v", end)
	}
}
