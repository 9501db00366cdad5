package lifecycle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// MaxMessage is the maximum length, in bytes, of a message that the API server accepts in a status or an event.
const MaxMessage = 1024

// Status is the part "status" of a merge patch of a unit. It replaces the complete list of conditions, so the caller
// must guard it with the resourceVersion of the unit that it was built from.
//
// A status contains each fact once: the phase shows that a unit holds quota and that its job is released. Older
// releases also wrote the conditions QuotaReserved and Admitted. Every write to the phase or the conditions of a
// released unit removes them. Explained does not, because neither is true while a unit waits, and its admission removes
// them.
type Status map[string]any

// Place is where a unit waits or was admitted from.
type Place struct {
	// Quota is the path of the quota group. Queue is the name of its Queue.
	Quota, Queue string
}

// Invalid reports on the unit what is wrong with its job. A unit without a phase becomes Enqueued.
func Invalid(unit *v1alpha1.QueueUnit, message string) Status {
	status := Status{"reason": wellknown.ReasonInvalidRequest, "message": Shorten(message)}
	if unit.Status.Phase == "" {
		status["phase"] = v1alpha1.PhaseEnqueued
	}
	return status
}

// Valid removes from the unit what Invalid has reported.
func Valid() Status { return Status{"reason": nil, "message": nil} }

// Explained reports why a unit waits.
func Explained(at Place, reason wellknown.Reason, message string) Status {
	status := at.status(reason, message)
	status["phase"] = waits(reason)
	return status
}

// Status reports where a unit holds quota, after its quota was renamed or its namespace was moved.
func (p Place) Status() Status { return Status{"quota": OrNull(p.Quota), "queue": OrNull(p.Queue)} }

// waits returns the phase of a unit that waits for the reason.
func waits(reason wellknown.Reason) v1alpha1.QueueUnitPhase {
	switch reason {
	case wellknown.ReasonBackoff:
		return v1alpha1.PhaseBackoff
	case wellknown.ReasonAdmissionCheckPending:
		return v1alpha1.PhaseReserved
	default:
		return v1alpha1.PhaseEnqueued
	}
}

// Dequeued admits a unit. It removes the conditions of earlier admissions.
func Dequeued(at Place, attempt int32, now metav1.MicroTime) Status {
	status := at.status("", "")
	status["phase"] = v1alpha1.PhaseDequeued
	status["attempts"] = attempt
	status["dequeueTime"] = now
	status["conditions"], status["evictedFor"], status["admittedPodSets"], status["growth"] = nil, nil, nil, nil
	return status
}

// Running reports that a released job runs.
func Running(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	return withoutRetired(unit, started(unit, now, Status{"phase": v1alpha1.PhaseRunning}))
}

// started adds the time at which the job began to run in this admission, unless the unit has it. Clients that wait for
// the job to run need it, because the phase may never be Running, or only for a moment.
func started(unit *v1alpha1.QueueUnit, now metav1.Time, status Status) Status {
	admitted := unit.Status.DequeueTime != nil
	if unit.Status.Phase == v1alpha1.PhaseDequeued || admitted && unit.Status.StartTime == nil {
		status["startTime"] = metav1.NewMicroTime(now.Time)
	}
	return status
}

// Remains reports why a unit whose job has ended, or is gone, still holds its quota: remains names the
// object that still exists.
func Remains(unit *v1alpha1.QueueUnit, gone bool, remains string, now metav1.Time) Status {
	message := fmt.Sprintf("the job has ended, but %s still exists and keeps the quota until it is deleted", remains)
	if gone {
		message = fmt.Sprintf("the job is gone, but what is left of it, such as %s, keeps the quota until it ends or is deleted", remains)
	}
	return withoutRetired(unit, started(unit, now, Status{"phase": v1alpha1.PhaseRunning, "reason": wellknown.ReasonPodsRemain, "message": Shorten(message)}))
}

// Finished ends a unit. It sets the phase, and the reason of the job if the API server accepts it.
func Finished(unit *v1alpha1.QueueUnit, succeeded bool, reason, message string, now metav1.Time) Status {
	phase, why := v1alpha1.PhaseFailed, wellknown.ReasonJobFailed
	if succeeded {
		phase, why = v1alpha1.PhaseSucceeded, wellknown.ReasonJobSucceeded
	}
	if !conditionReason.MatchString(reason) {
		reason = string(why)
	}
	conditions := with(slices.DeleteFunc(slices.Clone(unit.Status.Conditions), isOfPods), metav1.Condition{
		Type: wellknown.ConditionFinished, Status: metav1.ConditionTrue, Reason: reason, Message: Shorten(message), LastTransitionTime: now,
	})
	status := started(unit, now, Status{"phase": phase, "conditions": conditions})
	if unit.Status.EvictedFor != "" {
		status["evictedFor"] = nil
	}
	if unit.Status.Reason != "" || unit.Status.Message != "" {
		status["reason"], status["message"] = nil, nil
	}
	return status
}

// Expired ends a hand-made unit that was not renewed. Conditions are all conditions of the unit.
func Expired(conditions []metav1.Condition, message string, now metav1.MicroTime) Status {
	message = Shorten(message)
	finished := condition(wellknown.ConditionFinished, metav1.ConditionTrue, string(wellknown.ReasonNotRenewed), now)
	finished.Message = message
	return Status{"phase": v1alpha1.PhaseFailed, "reason": wellknown.ReasonNotRenewed, "message": message, "evictedFor": nil,
		"conditions": with(slices.DeleteFunc(slices.Clone(conditions), isOfPods), finished)}
}

// Evicted requests the eviction of a unit. The unit keeps its quota for now. evictedFor is the UID of the unit that
// gets the quota, if any. Conditions are all conditions of the unit.
func Evicted(conditions []metav1.Condition, reason wellknown.Reason, message string, evictedFor string, now metav1.MicroTime) Status {
	message = Shorten(message)
	evicted := condition(wellknown.ConditionEvicted, metav1.ConditionTrue, string(reason), now)
	evicted.Message = message
	status := Status{"reason": OrNull(string(reason)), "message": OrNull(message), "conditions": with(conditions, evicted)}
	if evictedFor != "" {
		status["evictedFor"] = evictedFor
	}
	return status
}

// OverQuota reports whether the pods of a unit exceed what was admitted while a limit of its quota is
// exceeded. Conditions are all conditions of the unit.
func OverQuota(conditions []metav1.Condition, over bool, reason wellknown.Reason, message string, now metav1.MicroTime) Status {
	status := metav1.ConditionFalse
	if over {
		status = metav1.ConditionTrue
	}
	shows := condition(wellknown.ConditionOverQuota, status, string(reason), now)
	shows.Message = Shorten(message)
	return Status{"conditions": with(conditions, shows)}
}

// Unscheduled reports that the scheduler finds no node for pods of a unit or, if the message is empty, that this is
// over. Conditions are all conditions of the unit.
func Unscheduled(conditions []metav1.Condition, message string, now metav1.MicroTime) Status {
	if message == "" {
		return Status{"conditions": slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
			return isRetired(c) || c.Type == wellknown.ConditionPodsScheduled
		})}
	}
	shows := condition(wellknown.ConditionPodsScheduled, metav1.ConditionFalse, string(wellknown.ReasonPodsUnschedulable), now)
	shows.Message = Shorten(message)
	return Status{"conditions": with(conditions, shows)}
}

// IsUnscheduled reports whether the unit has the condition PodsScheduled with status False.
func IsUnscheduled(unit *v1alpha1.QueueUnit) bool {
	return apimeta.IsStatusConditionFalse(unit.Status.Conditions, wellknown.ConditionPodsScheduled)
}

// IsOverQuota reports whether the unit has the condition OverQuota with status True.
func IsOverQuota(unit *v1alpha1.QueueUnit) bool {
	return apimeta.IsStatusConditionTrue(unit.Status.Conditions, wellknown.ConditionOverQuota)
}

// Stopped reports that the job of an evicted unit has stopped. It keeps the message of the eviction, which the unit
// shows while it waits again.
func Stopped(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	message := ""
	if evicted := EvictedOf(unit); evicted != nil {
		message = evicted.Message
	}
	return evicted(unit, metav1.ConditionTrue, wellknown.ReasonStopped, message, now)
}

// SuspendedByUser reports that a user suspended a released job, and that it has stopped.
func SuspendedByUser(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	return evicted(unit, metav1.ConditionTrue, wellknown.ReasonSuspendedByUser,
		"the job was suspended by hand after its release; set suspend to false to queue it again, or delete it", now)
}

// Resumed reports that a user unsuspended a job after SuspendedByUser.
func Resumed(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	return evicted(unit, metav1.ConditionFalse, wellknown.ReasonResumed,
		"the job was unsuspended by hand and is queued again", now)
}

// JobChanged reports that the job of an admitted unit is not released, because its request differs from the admitted
// one.
func JobChanged(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	return evicted(unit, metav1.ConditionTrue, wellknown.ReasonJobChanged,
		"the job changed after its admission and was not released; the unit is queued again with the new request", now)
}

// NotReleased reports that the API server refuses to release the job of an admitted unit.
func NotReleased(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	return evicted(unit, metav1.ConditionTrue, wellknown.ReasonStopped,
		"the API server refuses to release the job (event ReleaseRefused); the unit gives its quota back and is queued again", now)
}

// ChangeAccepted reports that the unit has the request of the changed job.
func ChangeAccepted(unit *v1alpha1.QueueUnit, now metav1.Time) Status {
	return evicted(unit, metav1.ConditionFalse, wellknown.ReasonRequeued,
		"the unit has the request of the changed job and is queued again", now)
}

// Requeued requeues a unit whose job has stopped or was never released. If a user suspended the job, or the job
// changed, the unit keeps its condition and is not tried. No unit is tried before requeueAt. Count is how often the
// unit recently freed its quota; 0 leaves both as they are.
func Requeued(at Place, reason wellknown.Reason, message string, count int32, requeueAt, now metav1.MicroTime) Status {
	status := at.status(reason, message)
	status["phase"], status["evictedFor"], status["admissionChecks"] = waits(reason), nil, nil
	status["admittedPodSets"] = nil
	if count > 0 {
		status["requeueState"] = v1alpha1.RequeueState{Count: count, RequeueAt: &requeueAt}
	}
	evicted := condition(wellknown.ConditionEvicted, metav1.ConditionFalse, string(wellknown.ReasonRequeued), now)
	if reason == wellknown.ReasonSuspendedByUser || reason == wellknown.ReasonJobChanged {
		evicted = condition(wellknown.ConditionEvicted, metav1.ConditionTrue, string(reason), now)
	}
	status["conditions"] = []metav1.Condition{evicted}
	return status
}

// status reports where and why a unit waits.
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

// with returns a copy of the conditions with the condition set and retired conditions removed.
func with(conditions []metav1.Condition, condition metav1.Condition) []metav1.Condition {
	all := slices.DeleteFunc(slices.Clone(conditions), isRetired)
	apimeta.SetStatusCondition(&all, condition)
	return all
}

// isRetired reports whether only older releases wrote the condition. The phase replaces it.
func isRetired(c metav1.Condition) bool {
	return c.Type == wellknown.ConditionQuotaReserved || c.Type == wellknown.ConditionAdmitted
}

// isOfPods reports whether the condition describes the pods of a job that has not ended.
func isOfPods(c metav1.Condition) bool {
	return c.Type == wellknown.ConditionOverQuota || c.Type == wellknown.ConditionPodsScheduled
}

// withoutRetired adds the removal of any retired conditions to a status that changes no condition.
func withoutRetired(unit *v1alpha1.QueueUnit, status Status) Status {
	if has := unit.Status.Conditions; slices.ContainsFunc(has, isRetired) {
		status["conditions"] = slices.DeleteFunc(slices.Clone(has), isRetired)
	}
	return status
}

// conditionReason matches the condition reasons that the API server accepts and that are short enough to read.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?$`)

// Shorten cuts the message to the length that the API server accepts in an event or a status.
func Shorten(message string) string { return cut(message, MaxMessage) }

// cut cuts the message to a length in bytes.
func cut(message string, most int) string {
	if len(message) <= most {
		return message
	}
	const more = "..."
	return strings.ToValidUTF8(message[:most-len(more)], "") + more
}

// AsOf adds to a message when its figures were read. While the cause of a wait stays the same, the unit is not written
// again for new figures.
func AsOf(message string, at metav1.MicroTime) string {
	when := fmt.Sprintf(" (at %s)", at.UTC().Format(time.RFC3339))
	return cut(message, MaxMessage-len(when)) + when
}

// OrNull returns the value of a field in a merge patch. An empty text becomes null, which removes the field.
func OrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
