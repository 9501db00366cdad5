package decision

import (
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// Attempt returns the value of annotation kube-queue/released for the unit's current
// attempt.
func Attempt(unit *v1alpha1.QueueUnit) string {
	return strconv.Itoa(int(unit.Status.Attempts))
}

// Admitted returns the number of pods that a unit was admitted with, by pod set; empty unless its phase is Dequeued or
// Running.
func Admitted(unit *v1alpha1.QueueUnit) map[string]int32 {
	admitted := map[string]int32{}
	if phase := unit.Status.Phase; phase == v1alpha1.PhaseDequeued || phase == v1alpha1.PhaseRunning {
		for i := range unit.Spec.PodSets {
			set := &unit.Spec.PodSets[i]
			admitted[set.Name] = lifecycle.AdmittedPods(unit, set)
		}
	}
	return admitted
}

func active(unit *v1alpha1.QueueUnit) bool { return ptr.Deref(unit.Spec.Active, true) }

func submitted(unit *v1alpha1.QueueUnit) time.Time {
	if unit.Spec.SubmissionTime == nil {
		return unit.CreationTimestamp.Time
	}
	return unit.Spec.SubmissionTime.Time
}

func reportsInvalid(unit *v1alpha1.QueueUnit, message string) bool {
	return unit.Status.Reason == wellknown.ReasonInvalidRequest && unit.Status.Message == lifecycle.Shorten(message)
}
