package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// PodsReady reports that all pods of a job were ready. The condition stays true until the unit frees its quota,
// because pods that are lost later are not tracked.
func PodsReady(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	return Status{"conditions": with(unit.Status.Conditions, metav1.Condition{
		Type: wellknown.ConditionPodsReady, Status: metav1.ConditionTrue, Reason: string(wellknown.ReasonPodsReady),
		Message: "all pods of the job were ready", LastTransitionTime: now,
	})}
}

// RunningAndReady reports in one write that a released job runs and that all its pods are ready.
func RunningAndReady(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	status := PodsReady(unit, now)
	status["phase"] = v1alpha1.PhaseRunning
	return started(unit, now, status)
}
