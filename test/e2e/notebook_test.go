package e2e

import (
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

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
