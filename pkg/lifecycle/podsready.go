package lifecycle

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// AwaitingPods adds to the status of an admitted unit that its queue waits for its pods to become ready.
func AwaitingPods(dequeued Status, now metav1.MicroTime) Status {
	waits := condition(wellknown.ConditionPodsReady, metav1.ConditionFalse, string(wellknown.ReasonPodsNotReady), now)
	waits.Message = "not all pods of the job were ready yet"
	dequeued["conditions"] = []metav1.Condition{waits}
	return dequeued
}

// AwaitsPods reports whether the queue of an admitted unit waits for its pods to become ready.
func AwaitsPods(unit *v1alpha1.QueueUnit) bool {
	phase := unit.Status.Phase
	return (phase == v1alpha1.PhaseDequeued || phase == v1alpha1.PhaseRunning) &&
		apimeta.IsStatusConditionFalse(unit.Status.Conditions, wellknown.ConditionPodsReady)
}
