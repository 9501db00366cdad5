package reconciler

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

func TestFinishedStatus(t *testing.T) {
	u := &v1alpha1.QueueUnit{Status: v1alpha1.QueueUnitStatus{
		Phase: v1alpha1.PhaseRunning, Attempts: 1, Reason: "Old", Message: "old",
		Conditions: []metav1.Condition{{Type: wellknown.ConditionAdmitted, Status: metav1.ConditionTrue, Reason: "Admitted"}},
	}}
	fields := finishedStatus(u, &framework.End{Reason: "not a reason!", Message: strings.Repeat("é", 2000)}, metav1.NewTime(noon))
	data, err := json.Marshal(map[string]any{"status": fields})
	if err != nil {
		t.Fatal(err)
	}
	var got v1alpha1.QueueUnit
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Status.Phase != v1alpha1.PhaseFailed || len(got.Status.Conditions) != 2 {
		t.Fatalf("the status is %s", data)
	}
	admitted, finished := got.Status.Conditions[0], got.Status.Conditions[1]
	if admitted.Status != metav1.ConditionFalse || finished.Status != metav1.ConditionTrue {
		t.Errorf("conditions are %s", data)
	}
	if finished.Reason != "JobFailed" || len(finished.Message) > decision.MaxMessage || !strings.HasSuffix(finished.Message, "é...") {
		t.Errorf("Finished is %s: %s", finished.Reason, finished.Message)
	}
	if u.Status.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("the cached unit was changed")
	}
}

func TestAStoppedUnitStillSaysWhyItWasEvicted(t *testing.T) {
	u := &v1alpha1.QueueUnit{Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseRunning, Conditions: []metav1.Condition{{
		Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue,
		Reason: string(wellknown.ReasonMaximumExecutionTime), Message: "it has run for longer than it may",
	}}}}
	conditions, _ := stoppedStatus(u, metav1.NewTime(noon))["conditions"].([]metav1.Condition)
	if len(conditions) != 1 || conditions[0].Reason != "Stopped" || conditions[0].Message != "it has run for longer than it may" {
		t.Errorf("conditions are %+v", conditions)
	}
}
