package harness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Unit returns the unit of a job, or nil.
func (l *Env) Unit(kind, name string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	units, err := l.Queue.SchedulingV1alpha1().QueueUnits(l.Namespace).List(l.t.Context(), metav1.ListOptions{})
	Must(l.t, err)
	for i := range units.Items {
		if ref := units.Items[i].Spec.ConsumerRef; ref.Kind == kind && ref.Name == name {
			return &units.Items[i]
		}
	}
	return nil
}

// WaitForUnit waits until the job has a unit.
func (l *Env) WaitForUnit(kind, name string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	var unit *schedulingv1alpha1.QueueUnit
	Eventually(l.t, time.Minute, fmt.Sprintf("%s %s has a unit", kind, name), func() (bool, string) {
		unit = l.Unit(kind, name)
		return unit != nil, "it has none"
	})
	return unit
}

func (l *Env) WaitForPhase(kind, name string, phases ...schedulingv1alpha1.QueueUnitPhase) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	var unit *schedulingv1alpha1.QueueUnit
	Eventually(l.t, time.Minute, fmt.Sprintf("the unit of %s %s is %v", kind, name, phases), func() (bool, string) {
		unit = l.Unit(kind, name)
		if unit == nil {
			return false, "there is no unit"
		}
		phase := unit.Status.Phase
		if phase == "" {
			phase = schedulingv1alpha1.PhaseEnqueued
		}
		return slices.Contains(phases, phase), fmt.Sprintf("%s %s: %s", phase, unit.Status.Reason, unit.Status.Message)
	})
	return unit
}

// WaitForReason waits until the unit of a job waits for the reason, with a message that has the words.
func (l *Env) WaitForReason(kind, name string, reason wellknown.Reason, words ...string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	var unit *schedulingv1alpha1.QueueUnit
	Eventually(l.t, time.Minute, fmt.Sprintf("the unit of %s %s waits for reason %s with the words %q", kind, name, reason, words), func() (bool, string) {
		if unit = l.Unit(kind, name); unit == nil {
			return false, "there is no unit"
		}
		s := unit.Status
		says := !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(s.Message, word) })
		return s.Reason == reason && says, fmt.Sprintf("%s %s: %s", s.Phase, s.Reason, s.Message)
	})
	return unit
}

func (l *Env) Ended(kind, name string) bool {
	unit := l.Unit(kind, name)
	return unit != nil && unit.Status.Phase.Ended()
}
