package reconciler

import (
	"fmt"
	"regexp"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

// invalidStatus says on the unit what is wrong with its job.
func invalidStatus(message string) map[string]any {
	return map[string]any{"reason": wellknown.ReasonInvalidRequest, "message": decision.CutMessage(message)}
}

// remainsStatus says why a unit whose job has ended still holds its quota.
func remainsStatus(remains string) map[string]any {
	return map[string]any{"phase": v1alpha1.PhaseRunning, "reason": wellknown.ReasonPodsRemain, "message": decision.CutMessage(fmt.Sprintf(
		"The job has ended, but its %s is still there and keeps the quota until it is deleted.", remains))}
}

// evictedStatus sets condition Evicted.
func evictedStatus(unit *v1alpha1.QueueUnit, status metav1.ConditionStatus, reason wellknown.Reason, message string, now metav1.Time) map[string]any {
	return map[string]any{"conditions": with(unit.Status.Conditions, metav1.Condition{
		Type: wellknown.ConditionEvicted, Status: status, Reason: string(reason), Message: message, LastTransitionTime: now,
	})}
}

// stoppedStatus says that an evicted job has stopped. The message still says why it
// was evicted: who waits after that is told so.
func stoppedStatus(unit *v1alpha1.QueueUnit, now metav1.Time) map[string]any {
	message := ""
	if condition := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionEvicted); condition != nil {
		message = condition.Message
	}
	return evictedStatus(unit, metav1.ConditionTrue, wellknown.ReasonStopped, message, now)
}

// finishedStatus is the end of a unit: phase, and the job's own reason. The
// conditions that say that it holds quota end with it.
func finishedStatus(unit *v1alpha1.QueueUnit, end *framework.End, now metav1.Time) map[string]any {
	phase, reason := v1alpha1.PhaseFailed, string(wellknown.ReasonJobFailed)
	if end.Succeeded {
		phase, reason = v1alpha1.PhaseSucceeded, string(wellknown.ReasonJobSucceeded)
	}
	if conditionReason.MatchString(end.Reason) {
		reason = end.Reason
	}
	conditions := with(unit.Status.Conditions, metav1.Condition{
		Type: wellknown.ConditionFinished, Status: metav1.ConditionTrue, Reason: reason, Message: decision.CutMessage(end.Message), LastTransitionTime: now,
	})
	for _, held := range []string{wellknown.ConditionAdmitted, wellknown.ConditionQuotaReserved} {
		if apimeta.IsStatusConditionTrue(conditions, held) {
			apimeta.SetStatusCondition(&conditions, metav1.Condition{
				Type: held, Status: metav1.ConditionFalse, Reason: wellknown.ConditionFinished, Message: "The job has ended.", LastTransitionTime: now,
			})
		}
	}
	fields := map[string]any{"phase": phase, "conditions": conditions}
	if unit.Status.Reason != "" || unit.Status.Message != "" {
		fields["reason"], fields["message"] = nil, nil
	}
	return fields
}

// conditionReason is what the API server takes as the reason of a condition; a
// longer one than this nobody would read.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?$`)

// with returns the conditions with one set; those of the unit are left as they are.
func with(conditions []metav1.Condition, condition metav1.Condition) []metav1.Condition {
	all := append([]metav1.Condition(nil), conditions...)
	apimeta.SetStatusCondition(&all, condition)
	return all
}
