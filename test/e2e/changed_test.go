package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/harness"
)

// A job that is edited between its admission and its release runs only with what it
// requests then. A pause of job-extensions makes the time between the two long.
func TestAJobEditedAfterItsAdmissionIsAdmittedWithItsNewRequest(t *testing.T) {
	l := suite.Env(t, "edited")
	_, extensions := suite.Both(t, enabled)
	l.Tree(`{cpu: "4"}`)
	l.Apply(job{name: "blocker", cpu: "4", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "blocker", "Running")
	l.Apply(job{name: "grows", cpu: "1", runs: time.Second, completions: 3}.String() +
		job{name: "too-large", cpu: "1", runs: time.Second, completions: 10}.String())
	l.WaitForReason("Job", "grows", "QuotaExceeded")
	l.WaitForReason("Job", "too-large", "QuotaExceeded")

	extensions.Freeze()
	l.Finish(harness.Jobs, "blocker")
	// Nobody reports the end of the blocker, so the quota becomes free by hand.
	l.TreeOf(`{name: more, namespaces: ["edited"], max: {cpu: "6"}}`)
	for _, name := range []string{"grows", "too-large"} {
		l.WaitForPhase("Job", name, "Dequeued")
	}
	l.Patch(harness.Jobs, "grows", `{"spec":{"parallelism":3}}`)
	l.Patch(harness.Jobs, "too-large", `{"spec":{"parallelism":10}}`)
	extensions.Thaw()

	l.WaitForReason("Job", "too-large", "ExceedsMaxQuota")
	if pods := l.Pods("too-large"); len(pods) > 0 {
		t.Errorf("a job of 10 cpu has %d pods in a quota of 6 cpu", len(pods))
	}
	l.WaitForPhase("Job", "grows", "Succeeded")
	if unit := l.Unit("Job", "grows"); unit.Status.Attempts != 2 {
		t.Errorf("it was admitted %d times, want 2", unit.Status.Attempts)
	}
	if pods := l.Pods("grows"); len(pods) != 3 {
		t.Errorf("%d pods, want 3", len(pods))
	}
}

// A job that is being deleted gets no quota, and does not keep what it has not used.
func aJobBeingDeletedGetsNoQuota(t *testing.T, l *harness.Env) {
	l.Tree(`{cpu: "1"}`)
	l.Apply(job{name: "blocker", cpu: "1", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "blocker", "Running")
	l.Apply(job{name: "kept", cpu: "1", runs: time.Second}.String())
	l.WaitForReason("Job", "kept", "QuotaExceeded")
	l.Patch(harness.Jobs, "kept", `{"metadata":{"finalizers":["example.com/keep"]}}`)
	harness.Must(t, l.Dynamic.Resource(harness.Jobs).Namespace("deleted").Delete(t.Context(), "kept", metav1.DeleteOptions{}))
	harness.Eventually(t, 20*time.Second, "the job leaves the queue", func() (bool, string) {
		return l.Unit("Job", "kept") == nil, "its unit exists"
	})
	l.Apply(job{name: "next", cpu: "1", runs: time.Second}.String())
	l.Finish(harness.Jobs, "blocker")
	l.WaitForPhase("Job", "next", "Succeeded")
	l.Patch(harness.Jobs, "kept", `{"metadata":{"finalizers":null}}`)

	// One that runs keeps it as long as it has pods.
	l.Apply(job{name: "stuck", cpu: "1", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "stuck", "Running")
	l.Apply(job{name: "last", cpu: "1", runs: time.Second}.String())
	l.WaitForReason("Job", "last", "QuotaExceeded")
	l.Patch(harness.Jobs, "stuck", `{"metadata":{"finalizers":["example.com/keep"]}}`)
	harness.Must(t, l.Dynamic.Resource(harness.Jobs).Namespace("deleted").Delete(t.Context(), "stuck", metav1.DeleteOptions{}))
	harness.Must(t, l.Kube.CoreV1().Pods("deleted").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "job-name=stuck"}))
	l.WaitForPhase("Job", "stuck", "Failed")
	l.WaitForPhase("Job", "last", "Succeeded")
	l.Patch(harness.Jobs, "stuck", `{"metadata":{"finalizers":null}}`)
	l.ExpectFree()
}
