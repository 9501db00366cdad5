package lifecycle

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestFinishedStatus(t *testing.T) {
	u := &v1alpha1.QueueUnit{Status: v1alpha1.QueueUnitStatus{
		Phase: v1alpha1.PhaseRunning, Attempts: 1, Reason: "Old", Message: "old",
		Conditions: []metav1.Condition{{Type: wellknown.ConditionPodsReady, Status: metav1.ConditionTrue, Reason: "Ready"}},
	}}
	got := patched(t, u, Finished(u, false, "not a reason!", strings.Repeat("é", 2000), metav1.NewTime(noon)))
	if got.Status.Phase != v1alpha1.PhaseFailed || len(got.Status.Conditions) != 2 || got.Status.Reason != "" || got.Status.Message != "" {
		t.Fatalf("the status is %+v", got.Status)
	}
	ready, finished := got.Status.Conditions[0], got.Status.Conditions[1]
	if ready.Type != wellknown.ConditionPodsReady || finished.Status != metav1.ConditionTrue {
		t.Errorf("conditions are %+v", got.Status.Conditions)
	}
	if finished.Reason != "JobFailed" || len(finished.Message) > MaxMessage || !strings.HasSuffix(finished.Message, "é...") {
		t.Errorf("Finished is %s: %s", finished.Reason, finished.Message)
	}
}

func TestAStoppedUnitStillSaysWhyItWasEvicted(t *testing.T) {
	u := &v1alpha1.QueueUnit{Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseRunning, Conditions: []metav1.Condition{{
		Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue,
		Reason: string(wellknown.ReasonMaximumExecutionTime), Message: "the job exceeded its maximum execution time",
	}}}}
	conditions := patched(t, u, Stopped(u, metav1.NewTime(noon))).Status.Conditions
	if len(conditions) != 1 || conditions[0].Reason != "Stopped" || conditions[0].Message != "the job exceeded its maximum execution time" {
		t.Errorf("conditions are %+v", conditions)
	}
}
