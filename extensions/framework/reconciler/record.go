package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// EventSink takes the events on jobs.
type EventSink interface {
	// Write creates an event once.
	Write(events.Event)
	// Repeat counts an event that can happen repeatedly.
	Repeat(events.Event)
	// Keep creates an event and renews it until Forget.
	Keep(events.Event)
	// Forget stops the renewal of the object's event.
	Forget(object types.UID)
}

func (r *reconciler) event(o *observation, kind string, reason wellknown.EventReason, message, key string) events.Event {
	apiVersion, name := r.servedKind().ToAPIVersionAndKind()
	object := corev1.ObjectReference{APIVersion: apiVersion, Kind: name, Namespace: o.key.Namespace, Name: o.key.Name, UID: o.job.GetUID()}
	if group, is := o.job.(*framework.PodGroup); is { // users look at its pods
		object.APIVersion, object.Kind, object.Name = corev1.SchemeGroupVersion.String(), "Pod", group.First()
	}
	return events.Event{
		Object: object,
		Type:   kind, Reason: reason, Message: message, Key: key,
	}
}

// record reports what the owner of a job must know: what holds the job, what was done to it, and what failed. It
// returns when to check again, and the error of the action.
func (r *reconciler) record(ctx context.Context, o *observation, decided decision.Decision, done bool, err error) (after time.Duration, _ error) {
	after = r.explain(ctx, o, decided)
	r.recordNotQueued(o, decided.NotQueued)
	r.recordUnreadable(o)
	r.recordIgnoredKeys(o)
	r.recordWarning(o)
	r.recordOverQuota(o)
	if done {
		r.recordDone(o, decided.Action)
	}
	lasts := r.refusedFor(o, err)
	if err != nil {
		action := decided.Action
		if action == decision.HideQueuing && o.unit.Status.Phase == v1alpha1.PhaseDequeued { // which comes before the release
			action = decision.Release
		}
		r.recordRefusal(o, action, lasts, err)
		// Pods of a group pass one by one.
		if action == decision.Release && lasts >= giveBackAfter && (r.gate == nil || o.state.Stopped) {
			return after, r.giveBack(ctx, o)
		}
		return after, err
	}
	if answers(decided.Action) {
		r.memory.answered(o.job.GetUID(), o.now)
	}
	return after, nil
}

func (r *reconciler) recordDone(o *observation, action decision.Action) {
	switch action {
	case decision.CreateUnit:
		r.Metrics.Seen(r.kind.Kind)
	case decision.RestoreUnit:
		r.recordRestored(o)
	case decision.HoldLate, decision.HoldAgain, decision.Evict:
		r.recordSuspended(o, action)
	case decision.Resume:
		r.recordResumed(o)
	case decision.LeaveQueue:
		r.recordLeft(o)
	case decision.Release:
		if decided := o.unit.Status.DequeueTime; decided != nil {
			r.Metrics.Released(r.kind.Kind, r.Clock.Since(decided.Time))
		}
		r.recordReleased(o)
		r.recordNotAnnotated(o)
	case decision.LowerPods:
		r.recordPodsLowered(o)
	case decision.MarkRemains:
		r.recordKept(o)
	case decision.MarkFinished:
		if o.state.End != nil {
			r.Metrics.Finished(r.kind.Kind, o.state.End.Succeeded)
		}
	}
}

// recordNotQueued reports once that the job was already running when it was first seen. This is remembered here, and
// by the event itself, which has the same name after a restart.
func (r *reconciler) recordNotQueued(o *observation, notQueued bool) {
	if since := r.memory.since(o.job.GetUID(), isNotQueued, notQueued, o.now); !notQueued || since.Before(o.now) {
		return
	}
	message := fmt.Sprintf(
		"Not queued: the job was already running when kube-queue first saw its annotation %s, so it continues without quota; suspend the job to queue it, or remove the annotation",
		wellknown.SuspendAnnotation)
	if o.state.Gated { // nothing can suspend a pod
		message = "Not queued: someone opened the scheduling gate of a pod, so it continues without quota; to queue it, delete it and create it again"
	}
	r.Events.Write(r.event(o, corev1.EventTypeWarning, wellknown.EventNotQueued, message, ""))
}

// recordRestored reports that the unit of the job was lost.
func (r *reconciler) recordRestored(o *observation) {
	r.Events.Write(r.event(o, corev1.EventTypeWarning, wellknown.EventUnitRestored, fmt.Sprintf(
		"QueueUnit %s of the released job was lost; it was created again, and is charged even if it does not fit", o.unit.Name), string(o.unit.UID)))
}

// recordWarning reports once any problem with the requests of a queued job that does not prevent its admission. After a
// restart, the event has the same name.
func (r *reconciler) recordWarning(o *observation) {
	if o.unit == nil || o.desired == nil {
		return
	}
	var warnings []events.Event
	warn := func(reason wellknown.EventReason, message string) {
		warnings = append(warnings, r.event(o, corev1.EventTypeWarning, reason, message, message))
	}
	if o.desired.Ignored != "" {
		warn(wellknown.EventMinCountIgnored, fmt.Sprintf("A minimum in annotation %s has no effect: %s", wellknown.MinCountAnnotation, o.desired.Ignored))
	}
	switch {
	case o.desired.Warning != "":
		warn(wellknown.EventUnsized, fmt.Sprintf("Charged nothing, because %s", o.desired.Warning))
	case o.desired.Empty:
		warn(wellknown.EventNoRequests, "Charged nothing, because the pods of the job request no resources; set resources.requests in the pod template")
	}
	said := ""
	for _, w := range warnings {
		said += w.Message
	}
	if r.memory.warned.set(o.job.GetUID(), said) {
		for _, w := range warnings {
			r.Events.Write(w)
		}
	}
}

func (r *reconciler) recordReleased(o *observation) {
	message := fmt.Sprintf("Released: QueueUnit %s was admitted", o.unit.Name)
	if o.unit.Status.Quota != "" {
		message = fmt.Sprintf("Released: QueueUnit %s was admitted to quota %s", o.unit.Name, o.unit.Status.Quota)
	}
	for i := range o.unit.Spec.PodSets {
		set := &o.unit.Spec.PodSets[i]
		if pods := lifecycle.AdmittedPods(o.unit, set); pods < set.Count {
			message += fmt.Sprintf(", with %d of %d pods of pod set %s", pods, set.Count, set.Name)
		}
	}
	r.Events.Write(r.event(o, corev1.EventTypeNormal, wellknown.EventReleased, message, decision.Attempt(o.unit)))
}

// recordKept reports once that an ended job keeps its quota until its remaining objects are deleted.
func (r *reconciler) recordKept(o *observation) {
	keeper, is := r.adapter.(framework.RemainsKeeper)
	if !is {
		return
	}
	if why := keeper.Keeps(o.job); why != "" {
		r.Events.Write(r.event(o, corev1.EventTypeWarning, wellknown.EventQuotaKept, fmt.Sprintf(
			"The job has ended, but %s still exists and keeps the quota until it is deleted: %s", o.state.Remains, why), decision.Attempt(o.unit)))
	}
}

// recordNotAnnotated reports once for each release which pods lack annotations of admission checks.
func (r *reconciler) recordNotAnnotated(o *observation) {
	if len(o.unplaced) == 0 {
		return
	}
	r.Events.Write(r.event(o, corev1.EventTypeWarning, wellknown.EventNotAnnotated,
		fmt.Sprintf("Released without annotations that admission checks set on its pods: %s", whyUnplaced(o.unplaced)), decision.Attempt(o.unit)))
}

// whyUnplaced returns each cause with its pod sets.
func whyUnplaced(unplaced decision.Unplaced) string {
	sets := map[string][]string{}
	for _, podSet := range slices.Sorted(maps.Keys(unplaced)) {
		sets[unplaced[podSet]] = append(sets[unplaced[podSet]], podSet)
	}
	var causes []string
	for _, cause := range slices.Sorted(maps.Keys(sets)) {
		causes = append(causes, fmt.Sprintf("%s (pod set %s)", cause, strings.Join(sets[cause], ", ")))
	}
	return strings.Join(causes, "; ")
}

// recordSuspended reports why a job was suspended. If its owner can cause that repeatedly, it is one event with a
// count.
func (r *reconciler) recordSuspended(o *observation, why decision.Action) {
	switch why {
	case decision.HoldAgain:
		if lifecycle.IsResumed(o.unit) {
			return // reported when it was resumed
		}
		r.Events.Repeat(r.event(o, corev1.EventTypeWarning, wellknown.EventHeldAgain, fmt.Sprintf(
			"Suspended again: the job was unsuspended by hand while QueueUnit %s is waiting; the job starts when the unit is admitted", o.unit.Name), decision.Attempt(o.unit)))
	case decision.HoldLate:
		r.Events.Repeat(r.event(o, corev1.EventTypeWarning, wellknown.EventHeldLate,
			fmt.Sprintf("Suspended late: %s; some of its pods may have started", r.whyLate(o)), ""))
	case decision.Evict:
		condition := lifecycle.EvictedOf(o.unit)
		kind, message := evictedEvent(o.job, condition, o.state.Lingers)
		r.Events.Write(r.event(o, kind, wellknown.EventReason(condition.Reason), message,
			decision.Attempt(o.unit)+"/"+condition.LastTransitionTime.UTC().Format(time.RFC3339)))
	}
}

// recordPodsLowered reports which numbers of pods of an evicted job were lowered.
func (r *reconciler) recordPodsLowered(o *observation) {
	var changes []string
	for _, growth := range o.state.Grown {
		changes = append(changes, fmt.Sprintf("%s of pod set %s from %d to %d", strings.TrimPrefix(growth.Field, "/"), growth.PodSet, growth.Now, growth.Admitted))
	}
	r.Events.Write(r.event(o, corev1.EventTypeNormal, wellknown.EventPodsLowered, fmt.Sprintf(
		"Lowered %s: the job is queued with the pods that were admitted, not with those that its autoscaler added", strings.Join(changes, ", ")),
		o.job.GetResourceVersion()))
}

// whyLate returns why a marked job was not suspended when it was created.
func (r *reconciler) whyLate(o *observation) string {
	owner := decision.PartOf(r.kind, o.job)
	switch {
	case o.state.Released != "":
		return "it was released before and its QueueUnit is gone, or it is a copy of a released job and the hold policy of its kind is missing (chart value holdPolicies.by)"
	case r.memory.is(o.job.GetUID(), isMarkedLate):
		return fmt.Sprintf("annotation %s was added after the job was created; create jobs with it", wellknown.SuspendAnnotation)
	case owner != nil:
		return fmt.Sprintf("the job names %s %s as its controller, which does not exist", owner.Kind, owner.Name)
	default:
		return fmt.Sprintf("nothing suspended the job when it was created; the hold policy of its kind is missing (chart value holdPolicies.by),"+
			" or a webhook or policy added the annotation after it, and must set %s too", strings.Join(r.described.SuspendPath, "."))
	}
}

// scheduled are the kinds that, with concurrencyPolicy Forbid, start no job while an earlier one has not ended.
var scheduled = []string{"CronJob", "CronWorkflow", "ScheduledSparkApplication"}

// blocks returns how the suspension of a job that is not queued again by itself affects the schedule that created it;
// empty if none did.
func blocks(job metav1.Object, evicted *metav1.Condition) string {
	owner, why := metav1.GetControllerOfNoCopy(job), wellknown.Reason(evicted.Reason)
	if owner == nil || !slices.Contains(scheduled, owner.Kind) || why != wellknown.ReasonMaximumExecutionTime && why != wellknown.ReasonDeactivated {
		return ""
	}
	return fmt.Sprintf("; %s %s counts the suspended job as active, and with concurrencyPolicy Forbid starts no other until this one is deleted", owner.Kind, owner.Name)
}

// evictedEvent returns the event of an eviction. Lingers is why the job does not stop immediately; empty if it does.
func evictedEvent(job metav1.Object, evicted *metav1.Condition, lingers string) (kind, message string) {
	done := "Suspended"
	if _, is := job.(*framework.PodGroup); is { // nothing can suspend a pod
		done = "Deleted"
	}
	if !isRequested(evicted) {
		done += " to take the quota back"
	}
	message = fmt.Sprintf("%s: %s%s", done, evicted.Message, blocks(job, evicted))
	if lingers != "" {
		return corev1.EventTypeWarning, fmt.Sprintf("%s. The job still holds its quota: %s", message, lingers)
	}
	return evictedType(evicted), message
}

func evictedType(evicted *metav1.Condition) string {
	if isRequested(evicted) {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// isRequested reports whether a user requested the eviction.
func isRequested(evicted *metav1.Condition) bool {
	return evicted.Reason == string(wellknown.ReasonDeactivated) || evicted.Reason == string(wellknown.ReasonQueueStopped)
}

// recordGrowthEvicted reports once for each eviction of growth that pods of the job are deleted.
func (r *reconciler) recordGrowthEvicted(o *observation, units []decision.Evicted) {
	for _, one := range units {
		evicted := lifecycle.EvictedOf(one.Unit)
		r.Events.Write(r.event(o, evictedType(evicted), wellknown.EventReason(evicted.Reason),
			fmt.Sprintf("Deleted %d of the pods that the job added, to take the quota of QueueUnit %s back: %s", one.Pods, one.Unit.Name, evicted.Message),
			one.Unit.Name+"/"+evicted.LastTransitionTime.UTC().Format(time.RFC3339)))
	}
}

// recordUnreadable reports that a key of a running job was changed to an invalid value. Until the job's owner fixes
// it, the previous value stays in force.
func (r *reconciler) recordUnreadable(o *observation) {
	fault := ""
	if o.unread != nil && o.unit != nil && o.unit.Status.Phase.HoldsQuota() {
		fault = o.unread.Error()
	}
	if r.memory.faults.set(o.job.GetUID(), fault) && fault != "" {
		r.Events.Repeat(r.event(o, corev1.EventTypeWarning, wellknown.EventInvalidRequest,
			fmt.Sprintf("Ignored an invalid change: %s; the previous value stays in force until this is fixed", fault), "running"))
	}
}

// recordIgnoredKeys reports once which labels and annotations of a queued job have no effect and were probably meant
// to have one. After a restart, the event has the same name.
func (r *reconciler) recordIgnoredKeys(o *observation) {
	ignored := ""
	if o.state.End == nil && o.state.Foreign == "" && (o.unit != nil || o.state.Marked) {
		ignored = decision.IgnoredKeys(o.job)
	}
	if r.memory.ignored.set(o.job.GetUID(), ignored) && ignored != "" {
		r.Events.Write(r.event(o, corev1.EventTypeWarning, wellknown.EventKeyIgnored, "Ignored: "+ignored, ignored))
	}
}

// recordOverQuota reports that the job uses more than was admitted while its quota is exceeded. Each
// time gets its own event.
func (r *reconciler) recordOverQuota(o *observation) {
	over := o.unit != nil && o.unit.Status.Phase.HoldsQuota() && lifecycle.IsOverQuota(o.unit)
	if since := r.memory.since(o.job.GetUID(), isOverQuota, over, o.now); !over || since.Before(o.now) {
		return
	}
	condition := apimeta.FindStatusCondition(o.unit.Status.Conditions, wellknown.ConditionOverQuota)
	r.Events.Write(r.event(o, corev1.EventTypeWarning, wellknown.EventOverQuota,
		fmt.Sprintf("Over quota: %s", condition.Message), condition.LastTransitionTime.UTC().Format(time.RFC3339)))
}

func (r *reconciler) recordResumed(o *observation) {
	message := fmt.Sprintf("Requeued: the job was unsuspended by hand; it stays suspended until QueueUnit %s is admitted", o.unit.Name)
	if state := o.unit.Status.RequeueState; state != nil && state.RequeueAt != nil && state.RequeueAt.After(o.now) {
		message = fmt.Sprintf("Requeued: the job was unsuspended by hand; it stays suspended until QueueUnit %s is admitted, at %s at the earliest, because the job was stopped %d times in a short time",
			o.unit.Name, state.RequeueAt.UTC().Format(time.RFC3339), state.Count)
	}
	r.Events.Repeat(r.event(o, corev1.EventTypeNormal, wellknown.EventRequeued, message, ""))
}

func (r *reconciler) recordLeft(o *observation) {
	why := "its mark was removed"
	switch {
	case o.state.Foreign != "":
		why = o.state.Foreign
	case o.state.Deleting:
		why = "the job is being deleted"
	case o.state.Gated && o.state.Marked && o.state.Suspended:
		why = "the pods that it was admitted for have ended or are gone; the pods that wait are queued as another job"
	case o.state.Gated && o.state.Marked:
		why = "someone opened the scheduling gate of a pod"
	case o.state.Gated && o.state.Suspended: // only users with the verb bypass can do that
		why = fmt.Sprintf("its mark was removed, and nothing will open its scheduling gate; to queue it, set annotation %s to \"true\" again, or delete it", wellknown.SuspendAnnotation)
	case o.state.Suspended:
		// Nothing else says why it does not start.
		why = fmt.Sprintf("it has no mark; it stays suspended until someone unsuspends it, or queues it with annotation %s: \"true\"", wellknown.SuspendAnnotation)
	}
	r.Events.Repeat(r.event(o, corev1.EventTypeNormal, wellknown.EventLeftQueue, fmt.Sprintf(
		"QueueUnit %s was deleted and the job left the queue: %s", o.unit.Name, why), ""))
}

// whyWaits returns the unit's reason and, if set, its message.
func whyWaits(unit *v1alpha1.QueueUnit) string {
	if unit.Status.Message == "" {
		return string(unit.Status.Reason)
	}
	return fmt.Sprintf("%s: %s", unit.Status.Reason, unit.Status.Message)
}

// queuingMessage returns the message of a job's own condition.
func queuingMessage(unit *v1alpha1.QueueUnit, queuing bool) string {
	switch {
	case !queuing:
		return fmt.Sprintf("QueueUnit %s is no longer waiting", unit.Name)
	case unit.Status.Reason == "":
		return fmt.Sprintf("QueueUnit %s is waiting for quota", unit.Name)
	default:
		return fmt.Sprintf("QueueUnit %s is waiting: %s", unit.Name, whyWaits(unit))
	}
}
