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

// A client that waits for a job to run must not miss a job that ended before its unit was Running.
func TestAUnitThatWasAdmittedShowsThatItsJobHasBegun(t *testing.T) {
	first, second := metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Hour))
	admitted := patched(t, &v1alpha1.QueueUnit{}, Dequeued(Place{Quota: "root/a"}, 1, metav1.NewMicroTime(noon)))
	running := patched(t, admitted, Running(admitted, first))
	again := running.DeepCopy()
	again.Status.Phase = v1alpha1.PhaseDequeued
	upgraded := running.DeepCopy()
	upgraded.Status.StartTime = nil
	for name, c := range map[string]struct {
		unit *v1alpha1.QueueUnit
		want *metav1.Time
	}{
		"it runs":                              {running, &first},
		"its pods are ready":                   {patched(t, admitted, RunningAndReady(admitted, first)), &first},
		"it ended before its unit was Running": {patched(t, admitted, Finished(admitted, true, "", "", first)), &first},
		"a part of it remains":                 {patched(t, admitted, Remains(admitted, false, "RayCluster a", first)), &first},
		"its end does not change that":         {patched(t, running, Finished(running, true, "", "", second)), &first},
		"it ran before an upgrade":             {patched(t, upgraded, Finished(upgraded, true, "", "", second)), &second},
		"it was admitted again":                {patched(t, again, Running(again, second)), &second},
		"it failed while it waited":            {patched(t, &v1alpha1.QueueUnit{}, Finished(&v1alpha1.QueueUnit{}, false, "", "", first)), nil},
	} {
		at := c.unit.Status.StartTime
		if (at == nil) != (c.want == nil) || at != nil && !at.Time.Equal(c.want.Time) {
			t.Errorf("%s: startTime is %v, want %v", name, at, c.want)
		}
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
