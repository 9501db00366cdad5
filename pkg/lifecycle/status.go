package lifecycle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// MaxMessage is the longest message that the API server takes of a status or an event, in
// bytes.
const MaxMessage = 1024

// Status is the part "status" of a merge patch of a unit. It replaces the list of
// conditions as a whole, so whoever sends one guards it with the resourceVersion of the
// unit that it was made from.
//
// A status says each thing once: phases say that a unit holds quota and that it is
// released. Older releases said so in conditions as well, QuotaReserved and Admitted;
// whatever is written to the phase of a unit that was released, or to its conditions,
// removes them. Explained does not, since a unit that waits has none that is true: its
// release removes them.
type Status map[string]any

// Place is where a unit waits, or from where it was released.
type Place struct {
	// Quota is the path of the quota group, Queue the name of its Queue.
	Quota, Queue string
}

// Invalid says on the unit what is wrong with its job.
func Invalid(message string) Status {
	return Status{"reason": wellknown.ReasonInvalidRequest, "message": Shorten(message)}
}

// Explained says why a unit waits.
func Explained(at Place, reason wellknown.Reason, message string) Status {
	status := at.status(reason, message)
	if reason != wellknown.ReasonBackoff { // which is a phase of its own
		status["phase"] = v1alpha1.PhaseEnqueued
	}
	return status
}

// Dequeued releases a unit. What conditions say of an earlier release ends with it.
func Dequeued(at Place, attempt int32, now metav1.MicroTime) Status {
	status := at.status("", "")
	status["phase"] = v1alpha1.PhaseDequeued
	status["attempts"] = attempt
	status["dequeueTime"] = now
	status["conditions"] = nil
	return status
}

// Running says that a released job runs.
func Running(unit *v1alpha1.QueueUnit) Status {
	return withoutRetired(unit, Status{"phase": v1alpha1.PhaseRunning})
}

// Remains says why a unit whose job has ended still holds its quota.
func Remains(unit *v1alpha1.QueueUnit, remains string) Status {
	return withoutRetired(unit, Status{"phase": v1alpha1.PhaseRunning, "reason": wellknown.ReasonPodsRemain, "message": Shorten(fmt.Sprintf(
		"the job has ended, but %s still exists and keeps the quota until it is deleted", remains))})
}

// Finished is the end of a unit: phase, and the job's own reason where the API server
// takes it.
func Finished(unit *v1alpha1.QueueUnit, succeeded bool, reason, message string, now metav1.Time) Status {
	phase, why := v1alpha1.PhaseFailed, wellknown.ReasonJobFailed
	if succeeded {
		phase, why = v1alpha1.PhaseSucceeded, wellknown.ReasonJobSucceeded
	}
	if !conditionReason.MatchString(reason) {
		reason = string(why)
	}
	conditions := with(unit.Status.Conditions, metav1.Condition{
		Type: wellknown.ConditionFinished, Status: metav1.ConditionTrue, Reason: reason, Message: Shorten(message), LastTransitionTime: now,
	})
	status := Status{"phase": phase, "conditions": conditions}
	if unit.Status.Reason != "" || unit.Status.Message != "" {
		status["reason"], status["message"] = nil, nil
	}
	return status
}

// Evicted asks for the quota of a unit back. The quota is still that which the unit was
// released on. Conditions are all that the unit has.
func Evicted(conditions []metav1.Condition, reason wellknown.Reason, message string, now metav1.MicroTime) Status {
	message = Shorten(message)
	evicted := condition(wellknown.ConditionEvicted, metav1.ConditionTrue, string(reason), now)
	evicted.Message = message
	return Status{"reason": OrNull(string(reason)), "message": OrNull(message), "conditions": with(conditions, evicted)}
}

// Stopped says that an evicted job has stopped. The message still says why it was
// evicted: a unit that waits after that says so.
func Stopped(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	message := ""
	if evicted := EvictedOf(unit); evicted != nil {
		message = evicted.Message
	}
	return evicted(unit, metav1.ConditionTrue, wellknown.ReasonStopped, message, now)
}

// SuspendedByUser says that a released job was suspended by hand and has stopped.
func SuspendedByUser(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	return evicted(unit, metav1.ConditionTrue, wellknown.ReasonSuspendedByUser,
		"suspended by hand after its release; set suspend to false to queue the job again, or delete it", now)
}

// Resumed says that such a job was unsuspended by hand.
func Resumed(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	return evicted(unit, metav1.ConditionFalse, wellknown.ReasonResumed,
		"unsuspended by hand; the unit is queued again", now)
}

// Requeued puts a unit whose job has stopped back in line. One whose job was suspended
// by hand keeps its condition, and is not tried.
func Requeued(at Place, reason wellknown.Reason, message string, now metav1.MicroTime) Status {
	status := at.status(reason, message)
	status["phase"] = v1alpha1.PhaseEnqueued
	evicted := condition(wellknown.ConditionEvicted, metav1.ConditionFalse, string(wellknown.ReasonRequeued), now)
	if reason == wellknown.ReasonSuspendedByUser {
		evicted = condition(wellknown.ConditionEvicted, metav1.ConditionTrue, string(reason), now)
	}
	status["conditions"] = []metav1.Condition{evicted}
	return status
}

// status says where a unit waits, and why.
func (p Place) status(reason wellknown.Reason, message string) Status {
	return Status{"reason": OrNull(string(reason)), "message": OrNull(Shorten(message)),
		"quota": OrNull(p.Quota), "queue": OrNull(p.Queue)}
}

func evicted(unit *v1alpha1.QueueUnit, status metav1.ConditionStatus, reason wellknown.Reason, message string, now metav1.Time) Status {
	return Status{"conditions": with(unit.Status.Conditions, metav1.Condition{
		Type: wellknown.ConditionEvicted, Status: status, Reason: string(reason), Message: message, LastTransitionTime: now,
	})}
}

func condition(kind string, status metav1.ConditionStatus, reason string, at metav1.MicroTime) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(at.Time)}
}

// with returns the conditions with one set, and none that is retired; those that are
// given are left as they are.
func with(conditions []metav1.Condition, condition metav1.Condition) []metav1.Condition {
	all := slices.DeleteFunc(slices.Clone(conditions), isRetired)
	apimeta.SetStatusCondition(&all, condition)
	return all
}

// isRetired: older releases wrote the condition, and said by it what the phase says.
func isRetired(c metav1.Condition) bool {
	return c.Type == wellknown.ConditionQuotaReserved || c.Type == wellknown.ConditionAdmitted
}

// withoutRetired adds to a status that touches no condition that the retired ones are
// removed, where the unit has one.
func withoutRetired(unit *v1alpha1.QueueUnit, status Status) Status {
	if has := unit.Status.Conditions; slices.ContainsFunc(has, isRetired) {
		status["conditions"] = slices.DeleteFunc(slices.Clone(has), isRetired)
	}
	return status
}

// conditionReason is what the API server takes as the reason of a condition; a
// longer one than this nobody would read.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?$`)

// Shorten a message to what the API server takes, of an event and of a status.
func Shorten(message string) string {
	if len(message) <= MaxMessage {
		return message
	}
	const more = "..."
	return strings.ToValidUTF8(message[:MaxMessage-len(more)], "") + more
}

// OrNull is the text as a merge patch has it: none removes the field.
func OrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
