package jobextensions

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

const annotated = `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true"}}}`

// short makes the pods of the job end almost immediately.
const short = `{spec: {template: {metadata: {annotations: {localcluster.kube-queue.dev/run-time: 200ms}}}}}`

func TestAJobThatWaitsCostsEightWritesAndSaysWhy(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated)
	unit := s.enqueued()
	s.refuse("QuotaExceeded", "team has 0 of 1 cpu left")
	s.event(corev1.EventTypeNormal, "Queued", "QueueUnit "+unit.Name+" is waiting: QuotaExceeded: team has 0 of 1 cpu left")
	s.admit()
	s.inPhase(v1alpha1.PhaseRunning)
	unit = s.inPhase(v1alpha1.PhaseSucceeded)
	if finished := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionFinished); finished == nil || finished.Reason != "CompletionsReached" {
		t.Errorf("conditions are %v", unit.Status.Conditions)
	}
	s.event(corev1.EventTypeNormal, "Released", "")
	s.cost(8)
}
