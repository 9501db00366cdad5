package e2e

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/test/harness"
)

// Without the policy of units, whoever may write their status can forge an admission. The job is charged,
// stopped and queued again, and a Warning reports it.
func TestAForgedAdmissionIsStoppedAndReported(t *testing.T) {
	l := suite.Env(t, "forged")
	suite.Both(t, enabled)
	l.Tree(`{cpu: "3"}`)
	l.Apply(job{name: "blocker", cpu: "3", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "blocker", "Running")
	l.Apply(job{name: "sly", cpu: "1", runs: harness.UntilFinished}.String())
	unit := l.WaitForReason("Job", "sly", "QuotaExceeded").Name

	_, err := suite.Kubectl(t.Context(), "delete", "validatingadmissionpolicybinding", "kube-queue-units")
	harness.Must(t, err)
	t.Cleanup(func() { harness.Must(t, suite.Install(context.Background())) })
	harness.Eventually(t, 30*time.Second, "the policy of units is gone", func() (bool, string) {
		_, err := suite.Kubectl(t.Context(), "-n", l.Namespace, "patch", "queueunit", unit, "--subresource=status", "--type=merge",
			"-p", `{"status":{"phase":"Dequeued","attempts":1}}`)
		if err != nil {
			return false, err.Error()
		}
		return true, ""
	})
	if event := l.WaitForEvent(unit, "NotAdmitted"); event.Type != "Warning" {
		t.Errorf("event %s %s, want a Warning", event.Type, event.Message)
	}
	stopped := func() (bool, string) {
		suspended, _, _ := unstructured.NestedBool(l.Object(harness.Jobs, "sly").Object, "spec", "suspend")
		unit := l.Unit("Job", "sly")
		return suspended && len(l.Pods("sly")) == 0 && unit.Status.Phase == "Enqueued", string(unit.Status.Phase)
	}
	harness.Eventually(t, time.Minute, "the job waits again without pods", stopped)
	harness.Never(t, time.Second, "it does not stay so", func() (bool, string) {
		waits, state := stopped()
		return !waits, state
	})
	l.Finish(harness.Jobs, "blocker")
	l.WaitForPhase("Job", "sly", "Running")
	l.Finish(harness.Jobs, "sly")
	l.WaitForPhase("Job", "sly", "Succeeded")
	l.ExpectFree()
	l.Allowed = []string{"over-limit", "unit-moves"} // the checker finds the forgery
}
