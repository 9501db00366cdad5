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

// stopped waits for the end of an eviction, and then requeues the unit like the controller.
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

// runsAgain activates the job and releases it for its second attempt.
func (s *story) runsAgain() {
	s.Helper()
	s.change(activated)
	s.becomesActive(true)
	if !s.suspended() {
		s.Error("it runs without its turn")
	}
	s.admit()
	s.becomesSuspended(false)
	s.inPhase(v1alpha1.PhaseRunning)
	if value := s.get().GetAnnotations()["kube-queue/released"]; value != "2" {
		s.Errorf("it was released for attempt %q", value)
	}
}

func TestADeactivatedJobIsStoppedAndWaitsUntilItIsActivated(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{batchJob, tfJob} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			endless := map[string]string{"Job": long, "TFJob": longTF}[k.name]
			s := begin(t, cluster, k, annotated, endless)
			s.admit()
			s.inPhase(v1alpha1.PhaseRunning)
			s.change(deactivated)
			s.becomesActive(false)
			if s.suspended() {
				t.Error("it was suspended before the controller decided on it")
			}
			s.evict(wellknown.ReasonDeactivated)
			s.becomesSuspended(true)
			s.event(corev1.EventTypeNormal, "Deactivated", "for another")
			s.stopped()
			s.runsAgain()
		})
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

func TestAJobThatRanForTooLongIsStoppedAndDeactivated(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, long, `{metadata: {annotations: {scheduling.x-k8s.io/max-exec-time-seconds: "60"}}}`)
	s.admit()
	s.inPhase(v1alpha1.PhaseRunning)
	// A change during the run takes effect; an unreadable value is ignored.
	has := func(seconds int32) {
		t.Helper()
		s.hasUnit(fmt.Sprintf("that may run %d s", seconds), func(u *v1alpha1.QueueUnit) bool { return ptr.Deref(u.Spec.MaximumExecutionTimeSeconds, 0) == seconds })
	}
	has(60)
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/max-exec-time-seconds: "90"}}}`)
	has(90)
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/max-exec-time-seconds: "soon"}}}`)
	s.event(corev1.EventTypeWarning, "InvalidRequest", `not "soon"`)
	has(90)
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/max-exec-time-seconds: "90"}}}`)

	before := s.writes().Total()
	s.evict(wellknown.ReasonMaximumExecutionTime)
	s.becomesSuspended(true)
	if value := s.get().GetAnnotations()["scheduling.x-k8s.io/active"]; value != "false" {
		t.Errorf("suspended, its annotation active is %q", value)
	}
	s.event(corev1.EventTypeWarning, "MaximumExecutionTime", "for another")
	s.stopped()
	// The eviction, suspend and event; inactive, stopped; back in the queue and event.
	if cost := s.writes().Total() - before; cost != 7 {
		t.Errorf("it cost %d writes: %v", cost, s.writes().By)
	}
	s.stays("it waits", func() string {
		if unit := s.unit(); !s.suspended() || ptr.Deref(unit.Spec.Active, true) {
			return "it is suspended: " + fmt.Sprint(s.suspended())
		}
		return ""
	})
	s.runsAgain()
}

// An unreadable value at the end of the time must not prevent the eviction.
func TestAJobThatRanForTooLongIsStoppedWithAnUnreadableTime(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, long, `{metadata: {annotations: {scheduling.x-k8s.io/max-exec-time-seconds: "60"}}}`)
	s.admit()
	s.inPhase(v1alpha1.PhaseRunning)
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/max-exec-time-seconds: "2h"}}}`)
	s.event(corev1.EventTypeWarning, "InvalidRequest", `not "2h"`)
	s.evict(wellknown.ReasonMaximumExecutionTime)
	s.becomesSuspended(true)
	if unit := s.evicted(metav1.ConditionTrue, wellknown.ReasonStopped); ptr.Deref(unit.Spec.Active, true) {
		t.Error("its unit is not inactive, and could be released again")
	}
}

func TestAJobDeactivatedAsItIsReleasedIsEvictedAndNotForgotten(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, long)
	s.admit()
	s.change(deactivated)
	s.becomesActive(false)
	s.evict(wellknown.ReasonDeactivated)
	s.becomesSuspended(true)
	s.stopped()
	s.runsAgain()
}

// Each step of an eviction is stored in the objects.
func TestARestartContinuesEvictions(t *testing.T) {
	t.Parallel()
	c := inTurn(t)
	stop, err := startExtensions(c, "job")
	if err != nil {
		t.Fatal(err)
	}
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
	if stop, err = startExtensions(c, "job"); err != nil {
		t.Fatal(err)
	}
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
	changedItsMind.becomesActive(true) // it is queued without a further change
}
