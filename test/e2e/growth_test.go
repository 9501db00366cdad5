package e2e

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

var pytorchJobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}

// orphanPods deletes a job and keeps its pods.
func orphanPods(t *testing.T, l *harness.Env, resource schema.GroupVersionResource, name string) {
	t.Helper()
	orphan := metav1.DeletePropagationOrphan
	objects := l.Dynamic.Resource(resource).Namespace(l.Namespace)
	harness.Must(t, objects.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &orphan}))
	harness.Eventually(t, 20*time.Second, name+" is gone", func() (bool, string) {
		_, err := objects.Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// pytorchjob has a master and workers of 1 cpu each that run until they are finished.
func pytorchjob(name string, workers int) string {
	const replica = `{replicas: %d, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: busybox, resources: {requests: {cpu: "1"}}}]}}}`
	return fmt.Sprintf(`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "true"}},
  spec: {pytorchReplicaSpecs: {Master: `+fmt.Sprintf(replica, 1)+`, Worker: `+fmt.Sprintf(replica, workers)+`}}}`+"\n---\n", name)
}

// A job that is scaled up after its release uses quota that nobody was asked for. It is charged, and
// nobody else gets it.
func TestTheGrowthOfAReleasedJobIsCharged(t *testing.T) {
	l := suite.Env(t, "growth")
	suite.Both(t, enabled)
	l.Tree(`{cpu: "6"}`)
	l.Apply(job{name: "grows", cpu: "1", runs: harness.UntilFinished, completions: 10}.String() + pytorchjob("trains", 1))
	l.WaitForPhase("Job", "grows", "Running")
	l.WaitForPhase("PyTorchJob", "trains", "Running")
	l.Patch(harness.Jobs, "grows", `{"spec":{"parallelism":3}}`)
	l.Patch(pytorchJobs, "trains", `{"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":2}}}}`)
	harness.Eventually(t, 30*time.Second, "the pods of the growth", func() (bool, string) {
		return len(l.Pods("grows")) == 3 && len(l.Pods("trains")) == 3, fmt.Sprint(len(l.Pods("grows")), len(l.Pods("trains")))
	})

	l.Apply(job{name: "next", cpu: "1", runs: time.Second}.String())
	waits := l.WaitForReason("Job", "next", wellknown.ReasonQuotaExceeded)
	if want := "insufficient cpu in quota root/team: requested 1, used 6 of max 6"; waits.Status.Message != want {
		t.Errorf("the message is %q, want %q", waits.Status.Message, want)
	}
	l.Patch(harness.Jobs, "grows", `{"spec":{"parallelism":1}}`)
	l.WaitForPhase("Job", "next", "Succeeded")
	l.Delete(harness.Jobs, "grows")
	l.Delete(pytorchJobs, "trains")
	l.ExpectFree()
}

// Pods of a deleted job that were kept use its quota until they are gone.
func TestThePodsOfAnOrphaningDeleteKeepTheirQuota(t *testing.T) {
	l := suite.Env(t, "orphans")
	controller, _ := suite.Both(t, enabled)
	l.Tree(`{cpu: "4"}`)
	l.Apply(job{name: "left", cpu: "2", runs: harness.UntilFinished}.String() + pytorchjob("trains", 1))
	l.WaitForPhase("Job", "left", "Running")
	l.WaitForPhase("PyTorchJob", "trains", "Running")
	orphanPods(t, l, harness.Jobs, "left")
	orphanPods(t, l, pytorchJobs, "trains")
	l.Apply(job{name: "next", cpu: "1", runs: time.Second}.String())
	l.WaitForReason("Job", "next", wellknown.ReasonQuotaExceeded)
	controller.Kill()
	controller.Start()
	harness.Never(t, 5*time.Second, "the next job has no quota", func() (bool, string) { return len(l.Pods("next")) > 0, "it has pods" })
	l.ClearOrphans("left")
	l.WaitForPhase("Job", "next", "Succeeded")
	l.ClearOrphans("trains")
	l.ExpectFree()
}

// With --count-unqueued-pods, a notebook with GPUs uses the quota of its namespace, and the job that
// waits says so.
func TestANotebookWithGPUsMakesAJobWait(t *testing.T) {
	l := suite.Env(t, "notebooks")
	suite.Both(t, enabled, "--count-unqueued-pods")
	l.Tree(`{example.com/gpu: "3"}`)
	l.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: notebook}, spec: {containers: [{name: main, image: main, resources: {limits: {example.com/gpu: 2}}}]}}`)
	l.Apply(gpuJob("first", "any", 2))
	waits := l.WaitForReason("Job", "first", wellknown.ReasonQuotaExceeded)
	if want := "insufficient example.com/gpu in quota root/team: requested 2, used 2 of max 3 (2 by pods outside of the queue)"; waits.Status.Message != want {
		t.Errorf("the message is %q, want %q", waits.Status.Message, want)
	}
	l.Delete(harness.Pods, "notebook")
	l.WaitForPhase("Job", "first", "Dequeued")
	l.Delete(harness.Jobs, "first")
	l.ExpectFree()
}
