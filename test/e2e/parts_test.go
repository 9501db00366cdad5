package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// controlledBy returns a job with a controller that exists.
func controlledBy(apiVersion, kind, name, uid, job string) string {
	return strings.Replace(job, "metadata:\n", fmt.Sprintf("metadata:\n  ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %q, controller: true}]\n", apiVersion, kind, name, uid), 1)
}

// The controller represents a ScaledJob of KEDA. Its Job once ran 4 cpu in a quota of 1.
func TestAMarkedJobOfAnyControllerWaitsForQuota(t *testing.T) {
	l := suite.Env(t, "scaled")
	suite.Both(t, enabled)
	l.Tree(`{cpu: "1"}`)
	l.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: scaler}}")
	scaler := string(l.Object(corev1.SchemeGroupVersion.WithResource("configmaps"), "scaler").GetUID())
	for name, cpu := range map[string]string{"consumer-1": "4", "consumer-2": "1"} {
		l.Apply(controlledBy("v1", "ConfigMap", "scaler", scaler, job{name: name, cpu: cpu, runs: harness.UntilFinished, unheld: true,
			annotations: `scheduling.x-k8s.io/suspend: "true"`}.String()))
	}
	l.WaitForReason("Job", "consumer-1", wellknown.ReasonExceedsMaxQuota)
	l.WaitForPhase("Job", "consumer-2", "Dequeued", "Running")
	if pods := l.Pods("consumer-1"); len(pods) > 0 {
		t.Errorf("%d pods run without quota", len(pods))
	}
	for _, name := range []string{"consumer-1", "consumer-2"} {
		l.Delete(harness.Jobs, name)
	}
	l.ExpectFree()
}

// A step of a job creates a Job. Once 6 cpu were used of a max of 4. Now the Job waits, and says that its creator holds quota.
func TestAJobOfAStepWaitsForQuotaAndNamesItsCreator(t *testing.T) {
	l := suite.Env(t, "step")
	suite.Both(t, enabled)
	l.Tree(`{cpu: "4"}`)
	l.Apply(job{name: "flow", cpu: "3", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "flow", "Running")
	step := l.Pods("flow")[0]
	l.Apply(controlledBy("v1", "Pod", step.Name, string(step.UID), job{name: "made", cpu: "3", runs: time.Second}.String()))
	l.WaitForReason("Job", "made", wellknown.ReasonQuotaExceeded)
	if event := l.WaitForEvent("made", "Queued"); !strings.Contains(event.Message, "Job flow, a step of which created the job, holds quota") || event.Type != corev1.EventTypeWarning {
		t.Errorf("the event is %s %q", event.Type, event.Message)
	}
	l.Apply(controlledBy("v1", "Pod", step.Name, string(step.UID), job{name: "fits", cpu: "1", runs: harness.UntilFinished}.String()))
	l.WaitForPhase("Job", "fits", "Running", "Dequeued")
	for _, name := range []string{"made", "fits", "flow"} {
		l.Delete(harness.Jobs, name)
	}
	l.ExpectFree()
}
