package harness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

// Unit returns the unit of a job, or nil. With "-growth" after its name, it returns the unit for pods that the job adds; of
// several, the one that waits.
func (l *Env) Unit(kind, name string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	units, err := l.Queue.SchedulingV1alpha1().QueueUnits(l.Namespace).List(l.t.Context(), metav1.ListOptions{})
	Must(l.t, err)
	var found *schedulingv1alpha1.QueueUnit
	for i := range units.Items {
		unit, growth := &units.Items[i], ""
		if unit.Spec.Growth {
			growth = decision.GrowthSuffix
		}
		if ref := unit.Spec.ConsumerRef; ref.Kind == kind && ref.Name+growth == name && (found == nil || unit.Status.Phase.Waits()) {
			found = unit
		}
	}
	return found
}

// WaitForUnit waits until the job has a unit.
func (l *Env) WaitForUnit(kind, name string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	return l.waitForUnit(kind, name, "exists", func(*schedulingv1alpha1.QueueUnit) bool { return true })
}

func (l *Env) WaitForPhase(kind, name string, phases ...schedulingv1alpha1.QueueUnitPhase) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	return l.waitForUnit(kind, name, fmt.Sprintf("is %v", phases), func(unit *schedulingv1alpha1.QueueUnit) bool {
		return slices.Contains(phases, cmp.Or(unit.Status.Phase, schedulingv1alpha1.PhaseEnqueued))
	})
}

// WaitForReason waits until the unit of a job waits for the reason, with a message that has the words.
func (l *Env) WaitForReason(kind, name string, reason wellknown.Reason, words ...string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	return l.waitForUnit(kind, name, fmt.Sprintf("waits for reason %s with the words %q", reason, words), func(unit *schedulingv1alpha1.QueueUnit) bool {
		lacks := func(word string) bool { return !strings.Contains(unit.Status.Message, word) }
		return unit.Status.Reason == reason && !slices.ContainsFunc(words, lacks)
	})
}

// waitForUnit waits until the job has a unit that reached accepts.
func (l *Env) waitForUnit(kind, name, state string, reached func(*schedulingv1alpha1.QueueUnit) bool) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	var unit *schedulingv1alpha1.QueueUnit
	Eventually(l.t, time.Minute, fmt.Sprintf("the unit of %s %s %s", kind, name, state), func() (bool, string) {
		if unit = l.Unit(kind, name); unit == nil {
			return false, "there is no unit"
		}
		return reached(unit), fmt.Sprintf("%s %s: %s", unit.Status.Phase, unit.Status.Reason, unit.Status.Message)
	})
	return unit
}

func (l *Env) Ended(kind, name string) bool {
	unit := l.Unit(kind, name)
	return unit != nil && unit.Status.Phase.Ended()
}
