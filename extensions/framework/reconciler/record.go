package reconciler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// EventSink takes what is to be reported jobs.
type EventSink interface {
	// Write has an event exist once.
	Write(events.Event)
	// Keep has it exist for as long as it is true.
	Keep(events.Event)
	// Forget ends the keeping of the object's event.
	Forget(object types.UID)
}

// event is about the job that is looked at.
func (r *reconciler) event(l *look, kind string, reason wellknown.EventReason, message, key string) events.Event {
	apiVersion, name := r.kindNow().ToAPIVersionAndKind()
	return events.Event{
		Object: corev1.ObjectReference{
			APIVersion: apiVersion, Kind: name, Namespace: l.key.Namespace, Name: l.key.Name, UID: l.job.GetUID(),
		},
		Type: kind, Reason: reason, Message: message, Key: key,
	}
}

// tellQueued keeps an event on the job while it waits: why, and which unit says
// more. It is reported once for each wait, and again when the reason becomes one that
// somebody must fix.
func (r *reconciler) recordQueued(l *look, queued bool) {
	if !queued {
		r.events.Forget(l.job.GetUID())
		return
	}
	kind, key := corev1.EventTypeNormal, decision.Attempt(l.unit)
	if reason := l.unit.Status.Reason; reason.NeedsAction() {
		kind, key = corev1.EventTypeWarning, key+"/"+string(reason)
		if reason == wellknown.ReasonInvalidRequest {
			// Each fault is reported: its owner fixes one after the other.
			key += "/" + l.unit.Status.Message
		}
	}
	r.events.Keep(r.event(l, kind, wellknown.EventQueued, fmt.Sprintf("QueueUnit %s waits: %s", l.unit.Name, whyWaits(l.unit)), key))
}

// tellWarning warns a job's owner of something that does not keep it from being
// admitted. It is reported once, with the unit.
func (r *reconciler) recordWarning(l *look) {
	if l.want.Warning != "" {
		r.events.Write(r.event(l, corev1.EventTypeWarning, wellknown.EventUnsized, l.want.Warning, ""))
	}
}

func (r *reconciler) recordReleased(l *look) {
	message := fmt.Sprintf("QueueUnit %s was admitted; the job may run", l.unit.Name)
	if l.unit.Status.Quota != "" {
		message += " on quota " + l.unit.Status.Quota
	}
	r.events.Write(r.event(l, corev1.EventTypeNormal, wellknown.EventReleased, message, decision.Attempt(l.unit)))
}

// tellSuspended says why a job was suspended. Each time is reported by itself.
func (r *reconciler) recordSuspended(l *look, why decision.Action) {
	key := l.job.GetResourceVersion()
	switch why {
	case decision.HoldAgain:
		if lifecycle.IsResumed(l.unit) {
			return // reported when it was resumed
		}
		r.events.Write(r.event(l, corev1.EventTypeWarning, wellknown.EventHeldAgain, fmt.Sprintf(
			"The job was unsuspended by hand while QueueUnit %s waits: it is suspended again", l.unit.Name), key))
	case decision.HoldLate:
		r.events.Write(r.event(l, corev1.EventTypeWarning, wellknown.EventHeldLate,
			"The job was not suspended when it was created and is suspended only now: some of its pods may have appeared."+
				" Is the hold policy of its kind installed, and is the cluster of version 1.36 or later?", key))
	case decision.Evict:
		condition := lifecycle.EvictedOf(l.unit)
		kind, message := evictedEvent(condition, l.state.Lingers)
		r.events.Write(r.event(l, kind, wellknown.EventReason(condition.Reason), message, key))
	}
}

// evictedEvent is how an eviction is reported. Lingers says why the job does not stop
// at once, if it does not.
func evictedEvent(evicted *metav1.Condition, lingers string) (kind, message string) {
	message = "The job is suspended, its quota taken back: " + evicted.Message
	switch {
	case lingers != "":
		return corev1.EventTypeWarning, message + ". It keeps its quota for now: " + lingers
	case evicted.Reason == string(wellknown.ReasonDeactivated), evicted.Reason == string(wellknown.ReasonQueueStopped): // somebody has asked for it
		return corev1.EventTypeNormal, message
	default:
		return corev1.EventTypeWarning, message
	}
}

// tellUnreadable reports a key that was changed while the job runs and cannot be
// read. Until the job's owner fixes it, what the key said before stays in force.
func (r *reconciler) recordUnreadable(l *look) {
	if l.unread != nil && l.unit != nil && l.unit.Status.Phase.HoldsQuota() {
		r.events.Write(r.event(l, corev1.EventTypeWarning, wellknown.EventInvalidRequest,
			l.unread.Error()+"; until then what it said before counts", l.unread.Error()))
	}
}

func (r *reconciler) recordResumed(l *look) {
	r.events.Write(r.event(l, corev1.EventTypeNormal, wellknown.EventRequeued, fmt.Sprintf(
		"The job was unsuspended by hand: it is suspended until QueueUnit %s, back in line, is admitted", l.unit.Name), l.job.GetResourceVersion()))
}

func (r *reconciler) recordLeft(l *look) {
	why := "it no longer asks to be queued"
	if l.state.Foreign != "" {
		why = l.state.Foreign
	}
	r.events.Write(r.event(l, corev1.EventTypeNormal, wellknown.EventLeftQueue, fmt.Sprintf(
		"QueueUnit %s is deleted and the job has left the queue: %s", l.unit.Name, why), string(l.unit.UID)))
}

// tellRefused says that a held job has no unit because the API server takes none,
// which only somebody else can fix, as a quota on the number of objects.
func (r *reconciler) recordRefused(l *look, err error) {
	refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
	if !refused || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return
	}
	r.events.Write(r.event(l, corev1.EventTypeWarning, wellknown.EventUnitRefused, "No QueueUnit could be made for the job: "+err.Error(), ""))
}

// whyWaits is the unit's reason and, where there is one, its message.
func whyWaits(unit *v1alpha1.QueueUnit) string {
	if unit.Status.Message == "" {
		return string(unit.Status.Reason)
	}
	return string(unit.Status.Reason) + ": " + unit.Status.Message
}

// queuingMessage is the message of a job's own condition.
func queuingMessage(unit *v1alpha1.QueueUnit, queuing bool) string {
	switch {
	case !queuing:
		return fmt.Sprintf("QueueUnit %s no longer waits", unit.Name)
	case unit.Status.Reason == "":
		return fmt.Sprintf("QueueUnit %s waits for quota", unit.Name)
	default:
		return fmt.Sprintf("QueueUnit %s waits: %s", unit.Name, whyWaits(unit))
	}
}
