package framework

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// maxMessage is the longest message that a unit's status takes.
const maxMessage = 1024

// guard is the metadata of a patch that is refused when the object has changed
// since, or is another one of the same name.
func guard(object metav1.Object) map[string]any {
	return map[string]any{"resourceVersion": object.GetResourceVersion(), "uid": object.GetUID()}
}

// jobPatch is a guarded merge patch of a job.
func jobPatch(job Object, annotations, rest map[string]any) ([]byte, error) {
	metadata := guard(job)
	all := maps.Clone(annotations)
	if own, has := rest["metadata"].(map[string]any); has {
		more, _ := own["annotations"].(map[string]any)
		if all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, more)
	}
	if len(all) > 0 {
		metadata["annotations"] = all
	}
	return encode(job, metadata, rest)
}

// releasePatch clears mark and suspend field and says which attempt it is for. A
// job that is marked by its suspend field alone gets no annotation it never had.
func releasePatch(adapter Adapter, job Object, attempt string) ([]byte, error) {
	annotations := map[string]any{ReleasedAnnotation: attempt}
	if annotated(adapter.Kind(), job) {
		annotations[SuspendAnnotation] = "false"
	}
	return jobPatch(job, annotations, adapter.SuspendPatch(job, false))
}

// suspendPatch suspends a job and puts its mark back. For good deactivates it too.
func suspendPatch(adapter Adapter, job Object, forGood bool) ([]byte, error) {
	annotations := map[string]any{}
	if forGood {
		annotations[ActiveAnnotation] = "false"
	}
	if annotated(adapter.Kind(), job) {
		annotations[SuspendAnnotation] = "true"
	}
	return jobPatch(job, annotations, adapter.SuspendPatch(job, true))
}

// unitPatch is a guarded merge patch of a unit's spec or status, and annotations.
func unitPatch(unit *v1alpha1.QueueUnit, part string, fields, annotations map[string]any) ([]byte, error) {
	metadata := guard(unit)
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return encode(unit, metadata, map[string]any{part: fields})
}

func encode(object metav1.Object, metadata, rest map[string]any) ([]byte, error) {
	patch := maps.Clone(rest)
	if patch == nil {
		patch = map[string]any{}
	}
	patch["metadata"] = metadata
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("making a patch of %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return data, nil
}

// invalidStatus says on the unit what is wrong with its job.
func invalidStatus(message string) map[string]any {
	return map[string]any{"reason": ReasonInvalidRequest, "message": cutMessage(message)}
}

// remainsStatus says why a unit whose job has ended still holds its quota.
func remainsStatus(remains string) map[string]any {
	return map[string]any{"phase": v1alpha1.PhaseRunning, "reason": v1alpha1.ReasonPodsRemain, "message": cutMessage(fmt.Sprintf(
		"The job has ended, but its %s is still there and keeps the quota until it is deleted.", remains))}
}

// evictedStatus sets condition Evicted.
func evictedStatus(unit *v1alpha1.QueueUnit, status metav1.ConditionStatus, reason, message string, now metav1.Time) map[string]any {
	return map[string]any{"conditions": with(unit.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionEvicted, Status: status, Reason: reason, Message: message, LastTransitionTime: now,
	})}
}

// stoppedStatus says that an evicted job has stopped. The message still says why it
// was evicted: who waits after that is told so.
func stoppedStatus(unit *v1alpha1.QueueUnit, now metav1.Time) map[string]any {
	message := ""
	if condition := apimeta.FindStatusCondition(unit.Status.Conditions, v1alpha1.ConditionEvicted); condition != nil {
		message = condition.Message
	}
	return evictedStatus(unit, metav1.ConditionTrue, v1alpha1.EvictedStopped, message, now)
}

// finishedStatus is the end of a unit: phase, and the job's own reason. The
// conditions that say that it holds quota end with it.
func finishedStatus(unit *v1alpha1.QueueUnit, end *End, now metav1.Time) map[string]any {
	phase, reason := v1alpha1.PhaseFailed, "JobFailed"
	if end.Succeeded {
		phase, reason = v1alpha1.PhaseSucceeded, "JobSucceeded"
	}
	if conditionReason.MatchString(end.Reason) {
		reason = end.Reason
	}
	conditions := with(unit.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionFinished, Status: metav1.ConditionTrue, Reason: reason, Message: cutMessage(end.Message), LastTransitionTime: now,
	})
	for _, held := range []string{v1alpha1.ConditionAdmitted, v1alpha1.ConditionQuotaReserved} {
		if apimeta.IsStatusConditionTrue(conditions, held) {
			apimeta.SetStatusCondition(&conditions, metav1.Condition{
				Type: held, Status: metav1.ConditionFalse, Reason: "Finished", Message: "The job has ended.", LastTransitionTime: now,
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

func cutMessage(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	const more = "..."
	return strings.ToValidUTF8(message[:maxMessage-len(more)], "") + more
}
