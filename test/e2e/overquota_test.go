package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// cpuJob returns a Job of one pod at a time, which requests 1 CPU and runs until the test ends it.
func cpuJob(name string, completions int) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {suspend: true, parallelism: 1, completions: %d, template: {
  metadata: {annotations: {%s: %s}},
  spec: {restartPolicy: Never, containers: [{name: main, image: main, resources: {requests: {cpu: 1}}}]}}}}`,
		name, completions, harness.RunTime, harness.UntilFinished)
}

// A Job that is scaled up beyond its quota reports it within the delay of 10 s, and so do its unit and the
// tree. Nothing else is admitted until it is scaled down.
func aJobThatOutgrowsItsQuotaReportsIt(t *testing.T, l *harness.Env) {
	l.Tree("{cpu: 2}")
	l.Apply(cpuJob("grows", 9))
	harness.Eventually(t, time.Minute, "the Job has a pod", func() (bool, string) {
		n := len(l.Pods("grows"))
		return n == 1, fmt.Sprintf("%d pods", n)
	})
	l.Patch(harness.Jobs, "grows", `{"spec":{"parallelism":5}}`)
	created := time.Now()
	conditionBecomes(t, l, metav1.ConditionTrue)
	if early := 9 * time.Second; time.Since(created) < early {
		t.Errorf("it is reported before %v", early)
	}
	const message = "the pods of the job request 5 cpu, but 1 was admitted; quota root/outgrows is above its limit: cpu is used 5 of max 2"
	unit := l.Unit("Job", "grows")
	if c := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionOverQuota); c.Message != message || c.Reason != "LimitExceeded" {
		t.Errorf("the condition is %+v, want the message %q", c, message)
	}
	if event := l.WaitForEvent("grows", "OverQuota"); event.Message != "Over quota: "+message || event.Type != "Warning" {
		t.Errorf("the event is %s %q", event.Type, event.Message)
	}
	treeBecomes(t, l, metav1.ConditionTrue, "quota root/outgrows is above its limit: cpu is used 5 of max 2")
	l.Apply(cpuJob("next", 1))
	if waits := l.WaitForReason("Job", "next", wellknown.ReasonQuotaExceeded); !strings.Contains(waits.Status.Message, "used 5 of max 2") {
		t.Errorf("the next job waits with %q", waits.Status.Message)
	}
	l.Patch(harness.Jobs, "grows", `{"spec":{"parallelism":1}}`)
	l.WaitForPhase("Job", "next", "Dequeued", "Running")
	conditionBecomes(t, l, metav1.ConditionFalse)
	treeBecomes(t, l, metav1.ConditionFalse, "All nodes of the tree are within their limits.")
	l.Delete(harness.Jobs, "grows")
	l.Delete(harness.Jobs, "next")
	l.ExpectFree()
}

func conditionBecomes(t *testing.T, l *harness.Env, want metav1.ConditionStatus) {
	t.Helper()
	harness.Eventually(t, time.Minute, fmt.Sprintf("condition OverQuota of the unit is %s", want), func() (bool, string) {
		c := apimeta.FindStatusCondition(l.Unit("Job", "grows").Status.Conditions, wellknown.ConditionOverQuota)
		return c != nil && c.Status == want, fmt.Sprintf("%+v", c)
	})
}

func treeBecomes(t *testing.T, l *harness.Env, want metav1.ConditionStatus, message string) {
	t.Helper()
	harness.Eventually(t, time.Minute, fmt.Sprintf("condition OverQuota of the tree is %s", want), func() (bool, string) {
		status, shows := l.TreeCondition(wellknown.ConditionOverQuota)
		return status == string(want) && shows == message, fmt.Sprintf("%s: %s", status, shows)
	})
}
