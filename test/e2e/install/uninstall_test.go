package install

import (
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

func TestTheChartIsNotUninstalledWhilePodsWaitAtTheGate(t *testing.T) {
	s := begin(t)
	s.helm("install", s.values("enabledExtensions: [tfjob, pytorchjob, pod]"), "--create-namespace", "--wait")
	s.waitForRollout()
	s.enter("default")
	s.Tree(`{cpu: "1"}`)
	s.WaitForGate()
	s.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: waits, annotations: {` + wellknown.SuspendAnnotation + `: "true"}},
  spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 2}}}]}}`)
	s.WaitForReason("Pod", "waits", wellknown.ReasonExceedsMaxQuota)
	if _, err := s.tryHelm(chart(), "uninstall", nil, "--wait"); err == nil || !strings.Contains(err.Error(), "kube-queue-check-uninstall") {
		t.Fatalf("the chart is uninstalled: %v", err)
	}
	s.waitForRollout() // it is still complete
	s.Delete(harness.Pods, "waits")
	s.helm("uninstall", nil, "--wait")
}
