package lifecycle

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Reserved charges a unit and starts the named admission checks. It removes the results of earlier checks and the
// conditions of earlier admissions. reservation is the number of this reservation, from 1.
func Reserved(at Place, checks []string, reservation int32, reason wellknown.Reason, message string, now metav1.MicroTime) Status {
	status := at.status(reason, message)
	status["phase"] = v1alpha1.PhaseReserved
	status["reservations"] = reservation
	status["conditions"], status["evictedFor"], status["admittedPodSets"] = nil, nil, nil
	states := make([]v1alpha1.AdmissionCheckState, 0, len(checks))
	for _, name := range checks {
		states = append(states, v1alpha1.AdmissionCheckState{Name: name, State: v1alpha1.CheckPending, LastTransitionTime: metav1.NewTime(now.Time)})
	}
	status["admissionChecks"] = states
	return status
}

// Rejected adds to the status of a requeued unit that an admission check rejected this generation of its spec.
func Rejected(requeued Status, generation int64, message string, now metav1.MicroTime) Status {
	rejected := condition(wellknown.ConditionRejected, metav1.ConditionTrue, string(wellknown.ReasonAdmissionCheckRejected), now)
	rejected.ObservedGeneration, rejected.Message = generation, Shorten(message)
	requeued["conditions"] = append(requeued["conditions"].([]metav1.Condition), rejected)
	return requeued
}

// RejectionOf returns the condition Rejected of a unit if it concerns the current spec; nil otherwise.
func RejectionOf(unit *v1alpha1.QueueUnit) *metav1.Condition {
	rejected := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionRejected)
	if rejected == nil || rejected.Status != metav1.ConditionTrue || rejected.ObservedGeneration != unit.Generation {
		return nil
	}
	return rejected
}
