package resourcequota

import (
	"fmt"
	"testing"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// TestPodsThatFillAResourceQuotaAreAdmitted: the API server already counts pods that wait at the gate, yet pods that
// fill the quota exactly are admitted.
func TestPodsThatFillAResourceQuotaAreAdmitted(t *testing.T) {
	l := newEnv(t, "filled")
	l.QueuePods()
	suite.BothWith(t, "pod", byResourceQuota)
	l.Apply(quota("team", `requests.cpu: "4", count/pods: "3"`))
	harness.Eventually(t, patience, "the quota counts", func() (bool, string) {
		status, _ := l.Object(harness.ResourceQuotas, "team").Object["status"].(map[string]any)
		return status["used"] != nil, ""
	})
	for _, name := range []string{"a", "b"} {
		l.Apply(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {kube-queue/pod-group: pair}, annotations: {scheduling.x-k8s.io/suspend: "true", kube-queue/pod-group-size: "2"}}
spec: {containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]}
`, name))
	}
	l.Apply(`apiVersion: v1
kind: Pod
metadata: {name: whole, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec: {containers: [{name: main, image: busybox, resources: {requests: {cpu: "2"}}}]}
`)
	l.WaitForPhase("PodGroup", "pair", schedulingv1alpha1.PhaseRunning)
	l.WaitForPhase("Pod", "whole", schedulingv1alpha1.PhaseRunning)
	for _, name := range []string{"a", "b", "whole"} {
		l.Delete(harness.Pods, name)
	}
	harness.Eventually(t, patience, "the units are gone", func() (bool, string) {
		return l.Unit("PodGroup", "pair") == nil && l.Unit("Pod", "whole") == nil, ""
	})
}
