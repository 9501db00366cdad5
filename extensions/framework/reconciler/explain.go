package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

const (
	// silentAfter is how long a new unit waits for a write of the controller before an outage of the controller is
	// reported. A running controller writes to it after a second.
	silentAfter = 3 * time.Second
	// muteAfter is how long a unit has no reason before this is reported although a controller runs. It is long enough
	// for the reasons of a large burst, so that these jobs do not get another event each.
	muteAfter = 5 * time.Minute
	// askAgain is when to check again whether Kueue is installed.
	askAgain = time.Minute
	// refusedAfter is how long a change must fail before it is reported, unless the API server forbids it.
	refusedAfter = 2 * time.Second
	// collectedAtMost is how long the garbage collector can take to delete a part of a deleted job.
	collectedAtMost = 30 * time.Second
)

// explain keeps an event on the job that says what holds it, if anything does. It returns when to check again.
func (r *reconciler) explain(ctx context.Context, o *observation, decided decision.Decision) time.Duration {
	if after, held := r.explainUnit(ctx, o, decided); held {
		return after
	}
	event, after := r.withoutUnit(ctx, o, decided)
	if event == nil {
		r.Events.Forget(o.job.GetUID())
		return 0
	}
	r.Events.Keep(*event)
	return after
}

// explainUnit explains why the unit of a job waits; held is false if no unit waits.
func (r *reconciler) explainUnit(ctx context.Context, o *observation, decided decision.Decision) (after time.Duration, held bool) {
	uid := o.job.GetUID()
	waits := o.unit != nil && (o.unit.Status.Phase.Waits() || o.unit.Status.Phase == v1alpha1.PhaseReserved)
	silent := waits && o.unit.Status.Reason == "" && o.unit.DeletionTimestamp == nil
	since := r.memory.since(uid, isSilent, silent, o.now)
	if !waits {
		r.memory.outages.forget(uid)
	}
	outage := r.controller.outage()
	switch {
	case waits && outage != nil && (silent && !o.now.Before(since.Add(silentAfter)) || !outage.absent && r.memory.outages.get(uid).since == outage.since):
		r.memory.outages.set(uid, notified{o.key, outage.since})
		r.Events.Keep(r.event(o, corev1.EventTypeWarning, wellknown.EventControllerDown,
			fmt.Sprintf("QueueUnit %s is waiting: %s", o.unit.Name, outage.message), outage.since))
	case decided.Queued:
		r.recordQueued(ctx, o)
	case isBeingDeleted(o):
		r.Events.Keep(r.event(o, corev1.EventTypeWarning, wellknown.EventQueued, fmt.Sprintf(
			"QueueUnit %s is being deleted, and the job is queued again when the unit is gone; these finalizers keep it: %s; ask whoever set them to remove them",
			o.unit.Name, strings.Join(o.unit.Finalizers, ", ")), string(o.unit.UID)+"/deleted"))
	case silent && !o.now.Before(since.Add(muteAfter)): // the API server may refuse the writes of the controller
		r.Events.Keep(r.event(o, corev1.EventTypeWarning, wellknown.EventQueued, fmt.Sprintf(
			"QueueUnit %s is waiting, and %s has not written why; look at the events of the unit, or ask an administrator to read the log of the controller", o.unit.Name, controllerName), "mute"))
	case silent:
		r.Events.Forget(uid)
	default:
		return 0, false
	}
	if silent {
		after = max(since.Add(silentAfter).Sub(o.now), 0)
		if after == 0 {
			after = max(since.Add(muteAfter).Sub(o.now), 0)
		}
	}
	return after, true
}

// isBeingDeleted reports whether a held job waits for the end of a unit that is kept by finalizers.
func isBeingDeleted(o *observation) bool {
	if o.unit == nil || o.unit.DeletionTimestamp == nil || len(o.unit.Finalizers) == 0 || !o.state.Suspended || o.state.Deleting {
		return false
	}
	return o.unit.Status.Phase.Waits() || o.unit.Status.Phase == v1alpha1.PhaseReserved || o.unit.Status.Phase == v1alpha1.PhaseDequeued
}

// withoutUnit returns an event on a job that has no unit and will not get one, although its owner expects it to be
// queued; nil for others.
func (r *reconciler) withoutUnit(ctx context.Context, o *observation, decided decision.Decision) (*events.Event, time.Duration) {
	if o.unit != nil || o.state.Deleting || o.state.End != nil {
		return nil, 0
	}
	if o.delayed > 0 && o.state.Suspended {
		event := r.event(o, corev1.EventTypeNormal, wellknown.EventQueued, fmt.Sprintf(
			"The job is queued again at %s, because it left the queue repeatedly in a short time", o.now.Add(o.delayed).UTC().Format(time.RFC3339)), "delayed")
		event.Revision = event.Message
		return &event, 0
	}
	annotations := o.job.GetAnnotations()
	if value := annotations[wellknown.SuspendAnnotation]; o.state.Foreign == "" && isMisspelled(annotations) {
		return r.notQueued(o, "value", "Not queued: annotation %s is %.40q, which means \"false\"; only \"true\" queues the job", wellknown.SuspendAnnotation, value), 0
	}
	if o.state.Foreign == "" && !o.state.Marked {
		if almost := decision.AlmostMarked(o.job); almost != "" {
			return r.notQueued(o, "key/"+almost, "Not queued: %s", almost), 0
		}
	}
	if o.state.Foreign == "" || !o.state.Marked && !o.state.Suspended {
		return nil, 0
	}
	_, labelled := o.job.GetLabels()[wellknown.KueueLabel]
	bypass := annotations[wellknown.BypassAnnotation] == "true"
	part := o.partOf != nil
	switch {
	case part && !labelled && !bypass:
		return r.explainPart(ctx, o)
	case labelled && !bypass && !part:
		if !r.kueue.ask(ctx, o.now) {
			return nil, askAgain
		}
		message := fmt.Sprintf("Not queued: label %s assigns the job to Kueue, which is not installed in this cluster; remove the label to queue the job here",
			wellknown.KueueLabel)
		if !o.state.Suspended {
			message = fmt.Sprintf("Not queued, and it runs without quota: label %s assigns the job to Kueue, which is not installed in this cluster; suspend the job and remove the label to queue it here",
				wellknown.KueueLabel)
		}
		return new(r.event(o, corev1.EventTypeWarning, wellknown.EventKueueMissing, message, "")), askAgain
	case o.state.Marked && o.state.Suspended && bypass:
		run := "unsuspend it"
		if o.state.Gated { // nothing will open the gate
			run = "create it again with the annotation"
		}
		return r.notQueued(o, "bypass",
			"Not queued: annotation %s takes the job out of the queue, and it is suspended; %s to run it without quota, or remove the annotation to queue it",
			wellknown.BypassAnnotation, run), 0
	case o.state.Marked && o.state.Suspended && o.state.ManagedBy != "" && !part:
		return r.notQueued(o, "managedBy", "Not queued: %s, which alone can unsuspend the job; create the job without managedBy to queue it", o.state.Foreign), 0
	}
	return nil, 0
}

func (r *reconciler) notQueued(o *observation, key, format string, args ...any) *events.Event {
	return new(r.event(o, corev1.EventTypeWarning, wellknown.EventNotQueued, fmt.Sprintf(format, args...), key))
}

// recordQueued keeps an event on the job while it waits. The event has the name of the unit and the reason. It is
// written once for each wait, and again after a reported outage of the controller. It is also written again when the
// unit starts or stops waiting for a user's action, or waits for a different one: the event must not ask for
// something that is already done.
func (r *reconciler) recordQueued(ctx context.Context, o *observation) {
	kind, key := corev1.EventTypeNormal, decision.Attempt(o.unit)
	reason := o.unit.Status.Reason
	if reason.NeedsAction() {
		kind = corev1.EventTypeWarning
	}
	if last := r.memory.outages.get(o.job.GetUID()); last.since != "" {
		key += "/" + last.since
	}
	why := whyWaits(o.unit)
	if creator := r.creatorHolds(ctx, o); creator != "" {
		kind, why, key = corev1.EventTypeWarning, why+"; "+creator, key+"/creator"
	}
	event := r.event(o, kind, wellknown.EventQueued, fmt.Sprintf("QueueUnit %s is waiting: %s", o.unit.Name, why), key)
	if reason.NeedsAction() || reason == wellknown.ReasonQueueStopped || reason == wellknown.ReasonInactive {
		event.Revision = whyWaits(o.unit)
	}
	r.Events.Keep(event)
}

// explainPart returns an event on a marked part of a job if that job is not queued, so that neither is charged.
func (r *reconciler) explainPart(ctx context.Context, o *observation) (*events.Event, time.Duration) {
	owner, namespace := o.partOf, o.job.GetNamespace()
	if !o.state.Marked {
		return nil, 0
	}
	if !r.sees(namespace, owner) {
		object, known, err := r.find(ctx, namespace, owner)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Failed to look for the controller of a job, retrying", "err", err)
			return nil, time.Second
		}
		if known && object == nil {
			// Some operators copy the annotation of a release to the parts, and these end with their job.
			if left := r.memory.since(o.job.GetUID(), isOrphan, true, o.now).Add(collectedAtMost).Sub(o.now); left > 0 && o.state.Released != "" {
				return nil, left
			}
			r.memory.lost.set(o.job.GetUID(), owner.UID)
			return nil, retryMin // it will be queued itself
		}
	}
	if !isAnnotated(o.job) { // suspended together with its job
		return nil, 0
	}
	holder, err := r.holderOf(ctx, namespace, owner)
	if holder != nil || err != nil {
		return nil, askAgain
	}
	if left := o.state.Created.Add(silentAfter).Sub(o.now); left > 0 {
		return nil, left // its job may still get its unit
	}
	return r.notQueued(o, "part",
		"Not queued: the job is a part of %[1]s %[2]s, whose operator starts and stops it, and %[1]s %[2]s is not queued, so nothing is charged for it; queue %[1]s %[2]s, or remove annotation %[3]s from its parts",
		owner.Kind, owner.Name, wellknown.SuspendAnnotation), askAgain
}

// creatorHolds explains that another job created this one, holds quota, and may wait for this job to end; empty if
// there is no such job.
func (r *reconciler) creatorHolds(ctx context.Context, o *observation) string {
	owner := metav1.GetControllerOf(o.job)
	if owner == nil {
		return ""
	}
	holder, err := r.holderOf(ctx, o.job.GetNamespace(), owner)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Failed to look for the job that created a job", "err", err)
	}
	if holder == nil || !holder.Status.Phase.HoldsQuota() {
		return ""
	}
	name := holder.Spec.ConsumerRef.Kind + " " + holder.Spec.ConsumerRef.Name
	if decision.IsPart(r.kind, decision.GroupKindOf(owner)) {
		return fmt.Sprintf("%[1]s controls the job and holds quota, and might wait for the job: if the operator of %[1]s created the job, ask an administrator to list the operator (chart value managedNamespaces.operators), then delete the job; the operator creates it again", name)
	}
	return fmt.Sprintf("a step of %[1]s created the job, and %[1]s holds quota and might wait for the job: if the quota has no room for both, delete one of them, or raise the quota", name)
}

// refusalOf returns why the API server does not make a change, in its own words; empty if the object has changed or the
// API server cannot be reached. A webhook can deny a request with any code, even that of a conflict. One that does not
// respond uses up the time of the request.
func refusalOf(err error) string {
	var answer apierrors.APIStatus
	switch {
	case (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) && !strings.Contains(err.Error(), "denied the request"):
		return ""
	case errors.As(err, &answer):
		return cmp.Or(answer.Status().Message, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return "the API server did not answer in time, perhaps because a webhook does not respond"
	}
	return ""
}

// refusedFor returns how long the API server has been rejecting the next change of the job, and forgets it once the
// change is made.
func (r *reconciler) refusedFor(o *observation, err error) time.Duration {
	is := refusalOf(err) != ""
	if since := r.memory.since(o.job.GetUID(), isRefused, is, o.now); is {
		return r.Clock.Since(since)
	}
	return 0
}

// recordRefusal reports that the API server rejects a change of the job: immediately if the change is not allowed, and
// after a while if it cannot be made, for example because a webhook does not answer. Each attempt is counted.
func (r *reconciler) recordRefusal(o *observation, action decision.Action, lasts time.Duration, err error) {
	words := refusalOf(err)
	if words == "" || !refused(err) && lasts < refusedAfter {
		return
	}
	switch action {
	case decision.CreateUnit, decision.RestoreUnit:
		if o.unit != nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return
		}
		what, fix := "The job is not queued, because its QueueUnit cannot be created", "an administrator of the namespace can change the quota, policy or webhook that refuses it"
		if action == decision.RestoreUnit {
			what = "The job runs, but its lost QueueUnit cannot be created again"
		}
		if apierrors.IsAlreadyExists(err) {
			fix = "the QueueUnit with its name is not the unit of this job; delete it"
		}
		r.Events.Repeat(r.event(o, corev1.EventTypeWarning, wellknown.EventUnitRefused, fmt.Sprintf("%s (kube-queue retries); %s: %s", what, fix, words), ""))
	case decision.ForgetRelease:
		r.Events.Repeat(r.event(o, corev1.EventTypeWarning, wellknown.EventUnitRefused, fmt.Sprintf(
			"The job is not queued, because the API server refuses to remove its annotation %s (kube-queue retries); correct the webhook or policy that the error names, or remove the annotation: %s",
			wellknown.ReleasedAnnotation, words), ""))
	case decision.Release:
		change, then := "unsuspend the job", ", and gives the quota back after a minute"
		if r.gate != nil {
			change = "open the scheduling gate of a pod"
			if !o.state.Stopped { // other pods run
				then = ""
			}
		}
		r.Events.Repeat(r.event(o, corev1.EventTypeWarning, wellknown.EventReleaseRefused, fmt.Sprintf(
			"QueueUnit %s was admitted and holds quota, but the API server refuses to %s (kube-queue retries%s); correct the webhook, policy or quota that the error names, or the job: %s",
			o.unit.Name, change, then, words), decision.Attempt(o.unit)))
	case decision.Evict, decision.HoldLate, decision.HoldAgain, decision.Resume:
		message := "The job must be suspended"
		if evicted := lifecycle.EvictedOf(o.unit); action == decision.Evict && evicted != nil {
			message = fmt.Sprintf("The job must be suspended, because %s,", evicted.Message)
		}
		r.Events.Repeat(r.event(o, corev1.EventTypeWarning, wellknown.EventSuspendRefused, fmt.Sprintf(
			"%s but the API server refuses that (kube-queue retries); correct the webhook or policy that the error names, or the job: %s", message, words), ""))
	}
}

// recordGrowthRefusal reports that the API server does not allow a change for the growth of a job, so that pods stay at
// the gate.
func (r *reconciler) recordGrowthRefusal(o *observation, err error) {
	if refused(err) {
		r.Events.Repeat(r.event(o, corev1.EventTypeWarning, wellknown.EventUnitRefused, fmt.Sprintf(
			"Pods of the job wait at the scheduling gate, because the API server refuses to open it or to change QueueUnits for them (kube-queue retries); correct the webhook, policy or quota that the error names: %s",
			refusalOf(err)), "growth"))
	}
}
