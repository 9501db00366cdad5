package jobextensions

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

const (
	deactivated = `{metadata: {annotations: {scheduling.x-k8s.io/active: "false"}}}`
	activated   = `{metadata: {annotations: {scheduling.x-k8s.io/active: "true"}}}`
	longTF      = `{spec: {tfReplicaSpecs: {Worker: {template: {metadata: {annotations: {localcluster.kube-queue.dev/run-time: never}}}}}}}`
)

// becomesActive waits for spec.active of the unit.
func (s *story) becomesActive(want bool) {
	s.Helper()
	s.hasUnit(fmt.Sprint("with active ", want), func(u *v1alpha1.QueueUnit) bool { return ptr.Deref(u.Spec.Active, true) == want })
}

// stopped waits for the end of an eviction, and then requeues the unit as the controller does.
func (s *story) stopped() {
	s.Helper()
	unit := s.evicted(metav1.ConditionTrue, wellknown.ReasonStopped)
	if message := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionEvicted).Message; message != "for another" {
		s.Errorf("the reason of the eviction has changed to %q", message)
	}
	if ptr.Deref(unit.Spec.Active, true) {
		s.Error("it has stopped and could be released again")
	}
	if pods, err := s.core.CoreV1().Pods(s.ns).List(s.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
		s.Errorf("%d pods are there, error %v", len(pods.Items), err)
	}
	s.decide(map[string]any{"phase": "Enqueued", "reason": "Inactive", "message": "it is inactive",
		"conditions": []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionFalse, Reason: "Requeued", LastTransitionTime: metav1.Now()}}})
	s.event(corev1.EventTypeNormal, "Queued", "Inactive: it is inactive")
	if value := s.get().GetAnnotations()[mark]; value != "true" || !s.suspended() {
		s.Errorf("the mark is %q, suspended %v", value, s.suspended())
	}
}

func TestAJobThatNobodyAdmittedIsStoppedAndQueuedAgain(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, long)
	s.admit()
	s.becomesSuspended(false)
	s.evict(wellknown.ReasonNotAdmitted)
	s.becomesSuspended(true)
	s.event(corev1.EventTypeWarning, "NotAdmitted", "Suspended to take the quota back: for another")
	s.evicted(metav1.ConditionTrue, wellknown.ReasonStopped)
}

// The objects store each step of an eviction.
func TestARestartContinuesEvictions(t *testing.T) {
	t.Parallel()
	c := inTurn(t)
	stop := startFor(t, c, "job")
	asked := begin(t, c, batchJob, annotated, long)
	halfDone := begin(t, c, batchJob, annotated, long)
	unreleased := begin(t, c, batchJob, annotated, long)
	changedItsMind := begin(t, c, batchJob, annotated, long)
	unreleased.enqueued()
	for _, s := range []*story{asked, halfDone, changedItsMind} {
		s.admit()
		s.inPhase(v1alpha1.PhaseRunning)
	}
	changedItsMind.change(deactivated)
	changedItsMind.becomesActive(false)
	stop()

	asked.evict(wellknown.ReasonMaximumExecutionTime)
	halfDone.evict(wellknown.ReasonMaximumExecutionTime)
	halfDone.change(`{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true", scheduling.x-k8s.io/active: "false"}}, spec: {suspend: true}}`)
	unreleased.admit()
	unreleased.evict(wellknown.ReasonMaximumExecutionTime)
	changedItsMind.evict(wellknown.ReasonDeactivated)
	changedItsMind.change(activated)
	stop = startFor(t, c, "job")
	defer stop()
	for _, s := range []*story{asked, halfDone} {
		s.becomesSuspended(true)
		s.stopped()
	}
	if unit := unreleased.evicted(metav1.ConditionTrue, wellknown.ReasonStopped); !ptr.Deref(unit.Spec.Active, true) {
		t.Error("a job that never ran was deactivated for having run too long")
	}
	changedItsMind.becomesSuspended(true)
	changedItsMind.stopped()
	changedItsMind.becomesActive(true) // it is queued without another change
}
