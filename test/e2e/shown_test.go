package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

func anInvalidJobShowsItsQueueAndPhase(t *testing.T, l *harness.Env) {
	l.Tree(`{cpu: "4"}`)
	l.Apply(job{name: "typo", cpu: "1", runs: time.Second, annotations: `scheduling.x-k8s.io/priority: "high"`}.String())
	unit := l.WaitForReason("Job", "typo", "InvalidRequest")
	if unit.Status.Phase != schedulingv1alpha1.PhaseEnqueued {
		t.Errorf("the phase is %q", unit.Status.Phase)
	}
	harness.Eventually(t, 10*time.Second, "kubectl get shows queue, phase and reason", func() (bool, string) {
		out, err := suite.Kubectl(t.Context(), "-n", "wrong", "get", "queueunits", "--no-headers")
		fields := strings.Fields(out)
		return err == nil && len(fields) > 3 && strings.Join(fields[1:4], " ") == "root-wrong Enqueued InvalidRequest", out
	})
	if again := l.Unit("Job", "typo"); again.Status.Message != unit.Status.Message || !strings.Contains(unit.Status.Message, "scheduling.x-k8s.io/priority") {
		t.Errorf("the message %q became %q", unit.Status.Message, again.Status.Message)
	}
	l.Allowed = []string{"write-budget"} // InvalidRequest is reported immediately
}

func TestAQueueInAnotherNamespaceIsRefusedOrReported(t *testing.T) {
	suite.Env(t, "misplaced")
	suite.Both(t, enabled)
	const queue = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: Queue\nmetadata: {name: mine, namespace: misplaced}\nspec: {policy: Block}\n"
	create := func() (string, error) { return suite.KubectlWith(t.Context(), queue, "create", "-f", "-") }
	if out, err := create(); err == nil || !strings.Contains(out+err.Error(), "a Queue in namespace misplaced has no effect; create it in namespace kube-queue") {
		t.Fatalf("it was not refused: %s, %v", out, err)
	}
	// Without the policy it is created, and its event says so.
	_, err := suite.Kubectl(t.Context(), "delete", "validatingadmissionpolicybinding", "kube-queue-queues")
	harness.Must(t, err)
	t.Cleanup(func() {
		if _, err := suite.Kubectl(context.Background(), "apply", "-f", "../../deploy/policies/queues.yaml"); err != nil {
			t.Error(err)
		}
	})
	harness.Eventually(t, time.Minute, "the policy is gone", func() (bool, string) {
		out, err := create()
		return err == nil, out
	})
	harness.Eventually(t, 5*time.Second, "the Queue has an event", func() (bool, string) {
		out, err := suite.Kubectl(t.Context(), "-n", "misplaced", "get", "events", "--field-selector=reason=IgnoredQueue,involvedObject.kind=Queue,involvedObject.name=mine", "-o", "jsonpath={.items[*].message}")
		return err == nil && strings.Contains(out, "only Queues in namespace kube-queue count"), out
	})
	_, err = suite.Kubectl(t.Context(), "-n", "misplaced", "delete", "queue", "mine")
	harness.Must(t, err)
}
