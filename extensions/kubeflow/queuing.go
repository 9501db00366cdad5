package kubeflow

import (
	"time"

	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// Queuing is the condition of a queued job. The operators do not change conditions that they do not know, nor their
// order. The column STATE shows the type of the last condition, even if it is false, so Queuing must be last to be
// visible.
const Queuing training.JobConditionType = "Queuing"

const (
	reasonQueuing = "JobQueuing"
	reasonQueued  = "JobDequeued"
)

func queuing(parts Parts) framework.Queuing {
	on := condition(parts, Queuing) != nil
	last := len(parts.Conditions) - 1
	return framework.Queuing{
		Ready: condition(parts, training.JobSuspended) != nil,
		On:    on,
		Shown: on && parts.Conditions[last].Type == Queuing,
	}
}

// QueuingPatch adds the condition as the last one, or sets it to false in its place: the
// operator's next condition then follows it. A merge patch replaces the complete list of
// conditions; its resourceVersion prevents it from overwriting the operator's changes.
func (b Base[T]) QueuingPatch(object framework.Object, on bool, message string, now time.Time) map[string]any {
	parts := b.parts(object)
	at := metav1.NewTime(now)
	fresh := training.JobCondition{
		Type: Queuing, Status: corev1.ConditionTrue, Reason: reasonQueuing, Message: message,
		LastUpdateTime: at, LastTransitionTime: at,
	}
	if !on {
		fresh.Status, fresh.Reason = corev1.ConditionFalse, reasonQueued
	}
	conditions := make([]training.JobCondition, 0, len(parts.Conditions)+1)
	for _, c := range parts.Conditions {
		if c.Type != Queuing {
			conditions = append(conditions, c)
			continue
		}
		if c.Status == fresh.Status {
			fresh.LastTransitionTime = c.LastTransitionTime
		}
		if !on {
			conditions = append(conditions, fresh)
		}
	}
	if on {
		conditions = append(conditions, fresh)
	}
	return map[string]any{"status": map[string]any{"conditions": conditions}}
}
