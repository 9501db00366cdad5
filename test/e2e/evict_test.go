package e2e

import (
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/harness"
)

// A job with a maximum run time of 3 s is evicted, the next job runs, and the evicted job runs
// again after its owner activates it. A job that its owner deactivates while both programs are down
// is evicted too.
func TestAJobIsEvictedAtItsMaximumRunTimeAndWhenDeactivated(t *testing.T) {
	l := suite.Env(t, "evicted")
	c, x := suite.Both(t, enabled)
	l.Tree(`{cpu: "3"}`)
	l.Apply(job{name: "endless", cpu: "3", runs: time.Hour, annotations: `scheduling.x-k8s.io/max-exec-time-seconds: "3"`}.String())
	l.WaitForUnit("Job", "endless")
	l.Apply(job{name: "next", cpu: "3", runs: time.Second}.String())
	unit := l.WaitForReason("Job", "endless", "Inactive")
	if unit.Status.Phase != "Enqueued" || unit.Status.Attempts != 1 || !strings.HasPrefix(unit.Status.Message, "the job exceeded its maximum execution time of 3 s (annotation scheduling.x-k8s.io/max-exec-time-seconds); ") {
		t.Errorf("it is %s after %d attempts: %s", unit.Status.Phase, unit.Status.Attempts, unit.Status.Message)
	}
	if event := l.WaitForEvent("endless", "MaximumExecutionTime"); event.Type != "Warning" {
		t.Errorf("the event is of type %s", event.Type)
	}
	if active := l.Object(harness.Jobs, "endless").GetAnnotations()["scheduling.x-k8s.io/active"]; active != "false" {
		t.Errorf("annotation active is %q", active)
	}
	l.WaitForPhase("Job", "next", "Succeeded")
	l.Patch(harness.Jobs, "endless", `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"true","scheduling.x-k8s.io/max-exec-time-seconds":null}}}`)
	l.WaitForPhase("Job", "endless", "Running")
	x.Kill()
	l.Patch(harness.Jobs, "endless", `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false"}}}`)
	c.Kill()
	x.Start()
	c.Start()
	unit = l.WaitForReason("Job", "endless", "Inactive")
	if unit.Status.Attempts != 2 || unit.Status.Phase != "Enqueued" {
		t.Errorf("it is %s after %d attempts", unit.Status.Phase, unit.Status.Attempts)
	}
	if pods := l.Pods("endless"); len(pods) > 0 {
		t.Errorf("%d pods are there", len(pods))
	}
}
