package harness

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// QueuePods installs what kube-queue needs to queue pods, and waits until new pods wait at the gate.
func (l *Env) QueuePods() {
	l.t.Helper()
	folder := filepath.Join(l.suite.Repository, "deploy", "pods")
	_, err := l.suite.Kubectl(l.t.Context(), "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(folder, "rbac"), "-f", filepath.Join(folder, "policies"))
	Must(l.t, err)
	l.WaitForGate()
}

// WaitForGate waits until new marked pods wait at the gate.
func (l *Env) WaitForGate() {
	l.t.Helper()
	probe := "apiVersion: v1\nkind: Pod\nmetadata: {generateName: probe-, namespace: " + l.Namespace +
		", annotations: {scheduling.x-k8s.io/suspend: \"true\"}}\nspec: {containers: [{name: main, image: busybox, resources: {requests: {cpu: 1m, memory: 1Mi}}}]}\n"
	Eventually(l.t, time.Minute, "pods wait at the gate", func() (bool, string) {
		out, err := l.suite.KubectlWith(l.t.Context(), probe, "create", "--dry-run=server", "-o", "jsonpath={.spec.schedulingGates[*].name}", "-f", "-")
		return strings.Contains(out, wellknown.PodGate), fmt.Sprint(out, err)
	})
}
