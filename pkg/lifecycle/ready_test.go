package lifecycle

import (
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

func TestAUnitWhosePodsWereReadyIsNoLongerWaitedFor(t *testing.T) {
	now := metav1.NewTime(noon)
	dequeued := patched(t, &v1alpha1.QueueUnit{}, AwaitingPods(Dequeued(Place{Quota: "root/a"}, 1, metav1.NewMicroTime(noon)), metav1.NewMicroTime(noon)))
	if !AwaitsPods(dequeued) {
		t.Fatalf("the pods of an admitted unit with the status %+v are not waited for", dequeued.Status)
	}
	for name, test := range map[string]struct {
		status Status
		phase  v1alpha1.QueueUnitPhase
	}{
		"before it runs":         {PodsReady(dequeued, now), v1alpha1.PhaseDequeued},
		"in one write with this": {RunningAndReady(dequeued, now), v1alpha1.PhaseRunning},
	} {
		t.Run(name, func(t *testing.T) {
			unit := patched(t, dequeued, test.status)
			ready := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionPodsReady)
			if AwaitsPods(unit) || unit.Status.Phase != test.phase || len(unit.Status.Conditions) != 1 || ready == nil {
				t.Fatalf("the status is %+v", unit.Status)
			}
			if ready.Status != metav1.ConditionTrue || ready.Reason != string(wellknown.ReasonPodsReady) || !ready.LastTransitionTime.Equal(&now) {
				t.Errorf("the condition is %+v", ready)
			}
		})
	}
}
