package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// takenOff is a patch after which nothing in a pod shows to which job it belongs.
const takenOff = `{"metadata":{"ownerReferences":null,"labels":null,"finalizers":null}}`

// A user takes a pod off its job, so that its operator creates another one. Both are charged.
func TestAPodThatIsTakenOffItsJobStaysCharged(t *testing.T) {
	l := suite.Env(t, "taken-off")
	suite.Both(t, enabled)
	l.Tree(`{cpu: "2"}`)
	l.Apply(job{name: "running", cpu: "1", completions: 8, runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "running", "Running")
	first := l.Pods("running")[0].Name
	l.Patch(harness.Pods, first, takenOff)
	harness.Eventually(t, time.Minute, "the Job has another pod", func() (bool, string) {
		pods := l.Pods("running")
		return len(pods) == 2, fmt.Sprint(len(pods), " pods")
	})
	l.Apply(job{name: "next", cpu: "1", runs: time.Second}.String())
	waits := l.WaitForReason("Job", "next", wellknown.ReasonQuotaExceeded)
	if want := "requested 1, used 2 of max 2"; !strings.Contains(waits.Status.Message, want) {
		t.Errorf("the message is %q, want %q", waits.Status.Message, want)
	}
	l.Delete(harness.Pods, first)
	l.WaitForPhase("Job", "next", "Dequeued", "Running", "Succeeded")
	l.Delete(harness.Jobs, "running")
	l.Delete(harness.Jobs, "next")
	l.ExpectFree()
}

// With --count-unqueued-pods, only what is known to serve a node is not charged. Nobody can claim it.
func TestAPodThatClaimsToServeANodeIsCharged(t *testing.T) {
	l := suite.Env(t, "claims")
	suite.Both(t, enabled, "--count-unqueued-pods")
	l.Tree(`{example.com/gpu: "6"}`)
	nodes, err := l.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	node := nodes.Items[0]
	claim := func(name, metadata, spec string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, %s}, spec: {%s containers: [{name: main, image: main, resources: {limits: {example.com/gpu: 2}}}]}}`+"\n---\n", name, metadata, spec)
	}
	// The garbage collector deletes what names an owner that it can look for and that does not exist.
	l.Apply(claim("daemon", `ownerReferences: [{apiVersion: example.com/v1, kind: DaemonSet, name: d, uid: d, controller: true}]`, ""))
	onNode := fmt.Sprintf("ownerReferences: [{apiVersion: v1, kind: Node, name: %s, uid: %s, controller: true}]", node.Name, node.UID)
	l.Apply(claim("of-node", onNode, ""))
	l.Apply(claim("static", onNode+", annotations: {kubernetes.io/config.mirror: x}", "nodeName: "+node.Name+", automountServiceAccountToken: false,"))
	l.Apply(gpuJob("first", "any", 1))
	waits := l.WaitForReason("Job", "first", wellknown.ReasonQuotaExceeded)
	if want := "used 6 of max 6 (6 by pods outside of the queue)"; !strings.Contains(waits.Status.Message, want) {
		t.Errorf("the message is %q, want %q", waits.Status.Message, want)
	}
	for _, name := range []string{"daemon", "of-node", "static"} {
		l.Delete(harness.Pods, name)
	}
	l.WaitForPhase("Job", "first", "Dequeued")
	l.Delete(harness.Jobs, "first")
	l.ExpectFree()
}

// Pods of a DaemonSet are charged in a managed namespace, because whoever may edit it may create DaemonSets.
func TestADaemonSetIsChargedInAManagedNamespace(t *testing.T) {
	l := suite.Env(t, "daemons")
	suite.Both(t, enabled, "--count-unqueued-pods")
	l.Tree(`{cpu: "1"}`)
	l.Apply(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
		spec: {tolerations: [{operator: Exists}], containers: [{name: main, image: main, resources: {requests: {cpu: "1"}}}]}}}}`)
	harness.Eventually(t, time.Minute, "the DaemonSet has a pod", func() (bool, string) { return len(l.Pods("agent")) > 0, "it has none" })
	l.Apply(job{name: "first", cpu: "1", runs: time.Second}.String())
	l.WaitForPhase("Job", "first", "Dequeued", "Running", "Succeeded")
	l.Manage()
	l.Apply(job{name: "second", cpu: "1", runs: time.Second}.String())
	l.WaitForReason("Job", "second", wellknown.ReasonQuotaExceeded)
	_, err := suite.Kubectl(t.Context(), "label", "namespace", l.Namespace, "kube-queue/managed-")
	harness.Must(t, err)
	l.WaitForPhase("Job", "second", "Dequeued", "Running", "Succeeded")
	_, err = suite.Kubectl(t.Context(), "-n", l.Namespace, "delete", "daemonset", "agent")
	harness.Must(t, err)
	l.Delete(harness.Jobs, "first")
	l.Delete(harness.Jobs, "second")
	l.ExpectFree()
}
