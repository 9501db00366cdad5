package codec

import (
	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Settings returns the settings of a Queue.
func Settings(q *schedulingv1alpha1.Queue) scheduler.QueueChanged {
	e := scheduler.QueueChanged{Queue: q.Name, Policy: queue.PolicyNamed(string(q.Spec.Policy)), Rank: q.Spec.Priority,
		Checks: scheduler.ChecksOf(q.Spec.AdmissionChecks), Gates: q.Spec.Growth == schedulingv1alpha1.GrowthGate}
	if timeout := q.Spec.PodsReadyTimeout; timeout != nil {
		e.PodsReady = scheduler.PodsReady{Timeout: max(timeout.Duration, 0), Blocks: q.Spec.BlockUntilPodsReady}
	}
	if after := q.Spec.ReserveAfter; after != nil {
		e.ReserveAfter = max(after.Duration, 0)
	}
	if q.Spec.MaxPriority != nil {
		e.MaxPriority = scheduler.Cap{Set: true, Value: *q.Spec.MaxPriority}
	}
	if p := q.Spec.Preemption; p != nil {
		e.Preemption = scheduler.Preemption{WithinQueue: p.WithinQueue == schedulingv1alpha1.PreemptLowerPriority, MaxPerMinute: p.MaxPerMinute}
		if p.MinRunTime != nil {
			e.Preemption.MinRunTime = scheduler.Period{Set: true, Value: max(p.MinRunTime.Duration, 0)}
		}
	}
	switch q.Spec.Stop {
	case schedulingv1alpha1.StopHold:
		e.Stop = scheduler.Hold
	case schedulingv1alpha1.StopDrain:
		e.Stop = scheduler.Drain
	}
	return e
}
