package provisioning

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// Answer is what a check reports about a unit.
type Answer struct {
	State   v1alpha1.CheckState
	Message string
	// Updates are for the pods of the job. They are set as soon as the request exists.
	Updates []v1alpha1.PodSetUpdate
	// Cause is the beginning of the message. It does not change while the situation is the same.
	Cause string
	// Event is the reason of an event on the job; empty for none.
	Event wellknown.EventReason
}

// Observed is a request that was created, and its unit.
type Observed struct {
	Unit  *v1alpha1.QueueUnit
	Entry v1alpha1.AdmissionCheckState
	// Request is nil if it no longer exists.
	Request *Request
	// Limit is how many requests may follow failed ones in a row; nil: no limit.
	Limit *int32
}

// Follow returns the current answer of the check, if a request was created. An answer that is final for the attempt
// stays.
func Follow(o Observed) Answer {
	same := Unchanged(o.Entry)
	switch phase := o.Unit.Status.Phase; {
	case o.Entry.State != v1alpha1.CheckPending && o.Entry.State != v1alpha1.CheckReady, len(o.Entry.PodSetUpdates) == 0:
		return same
	case phase == v1alpha1.PhaseReserved:
		answer := beforeRelease(o)
		answer.Updates = o.Entry.PodSetUpdates
		return answer
	case o.Request == nil || o.Entry.State != v1alpha1.CheckReady || !phase.HoldsQuota():
		return same
	}
	// The pods of the job may run already, so only nodes that are taken away matter.
	if c := o.Request.is(conditionRevoked); c != nil {
		return because(v1alpha1.CheckRetry, c, "the nodes of ProvisioningRequest %s were taken away", o.Request.Name)
	}
	return same
}

// beforeRelease returns the answer while the unit holds quota and its job is held.
func beforeRelease(o Observed) Answer {
	r, name := o.Request, RequestName(o.Unit, o.Entry.Name)
	if r == nil || r.DeletionTimestamp != nil {
		return because(v1alpha1.CheckRetry, nil, "ProvisioningRequest %s was deleted", name)
	}
	if c := r.is(conditionFailed); c != nil {
		return failed(o, c)
	}
	if c := r.is(conditionRevoked); c != nil {
		return because(v1alpha1.CheckRetry, c, "the nodes of ProvisioningRequest %s were taken away", name)
	}
	if c := r.is(conditionExpired); c != nil {
		return because(v1alpha1.CheckRetry, c, "the nodes of ProvisioningRequest %s were not used in time", name)
	}
	if r.Annotations[wellknown.RequestedForAnnotation] != podSetsOf(o.Unit) {
		return changed(name)
	}
	if c := r.is(conditionReady); c != nil {
		return because(v1alpha1.CheckReady, c, "ProvisioningRequest %s is provisioned", name)
	}
	return waits(r)
}

// changed returns the answer to a request for pods that the job no longer has.
func changed(request string) Answer {
	return because(v1alpha1.CheckRetry, nil, "the pods of the job changed after ProvisioningRequest %s was created", request)
}

func failed(o Observed, c *metav1.Condition) Answer {
	answer := because(v1alpha1.CheckRetry, c, "ProvisioningRequest %s failed", o.Request.Name)
	if times := o.Request.FailedInARow(); o.Limit != nil && times > *o.Limit {
		answer = because(v1alpha1.CheckRejected, c, "ProvisioningRequest %s failed, and no further request is allowed after %d failed in a row", o.Request.Name, times)
	}
	answer.Event = wellknown.EventProvisioningFailed
	return answer
}

// waits returns the answer while the autoscaler has not decided. If the autoscaler has reported anything, the answer
// has an event.
func waits(r *Request) Answer {
	c, format := r.condition(conditionReady), "ProvisioningRequest %s is not provisioned yet"
	if c == nil {
		c, format = r.condition(conditionAccepted), "ProvisioningRequest %s is accepted"
	}
	switch {
	case c == nil:
		return created(r)
	case c.Type == conditionAccepted && c.Status != metav1.ConditionTrue:
		format = "ProvisioningRequest %s is not accepted yet"
	}
	answer := because(v1alpha1.CheckPending, c, format, r.Name)
	answer.Event = wellknown.EventProvisioningPending
	return answer
}

// created returns the answer while the autoscaler has reported nothing.
func created(r *Request) Answer {
	return because(v1alpha1.CheckPending, nil, "ProvisioningRequest %s waits for an autoscaler", r.Name)
}

// because returns an answer with the reason and the message of a condition.
func because(state v1alpha1.CheckState, c *metav1.Condition, format string, args ...any) Answer {
	cause := fmt.Sprintf(format, args...)
	if c != nil && c.Reason != "" {
		cause = fmt.Sprintf("%s: %s", cause, c.Reason)
	}
	message := cause
	if c != nil && strings.TrimSpace(c.Message) != "" {
		message += ": " + strings.TrimSpace(c.Message)
	}
	return Answer{State: state, Message: lifecycle.Shorten(message), Cause: cause}
}

// Entry returns the entry of the check with the answer, and whether it differs from the old one.
func (a Answer) Entry(old v1alpha1.AdmissionCheckState, now metav1.Time) (entry v1alpha1.AdmissionCheckState, changed bool) {
	entry = old
	if entry.State != a.State {
		entry.State, entry.LastTransitionTime, changed = a.State, now, true
	}
	if message := lifecycle.Shorten(a.Message); entry.Message != message {
		entry.Message, changed = message, true
	}
	if len(a.Updates) != len(old.PodSetUpdates) {
		entry.PodSetUpdates, changed = a.Updates, true
	}
	return entry, changed
}

// OnlyDetail reports whether the answer differs from the entry only in details that autoscalers
// change often, such as an estimated time.
func (a Answer) OnlyDetail(old v1alpha1.AdmissionCheckState) bool {
	return a.State == v1alpha1.CheckPending && old.State == a.State && a.Cause != "" &&
		len(a.Updates) == len(old.PodSetUpdates) && strings.HasPrefix(old.Message, a.Cause)
}

// Waiting returns the answer for a check that cannot be decided yet, for a reason outside the job.
func Waiting(format string, args ...any) Answer {
	return Answer{State: v1alpha1.CheckPending, Message: fmt.Sprintf(format, args...)}
}

// Unmanaged is the answer for a unit without managed pod sets.
func Unmanaged() Answer {
	return Answer{State: v1alpha1.CheckReady, Message: "no pod set requests a managed resource, so no nodes are requested"}
}

// Unchanged returns the answer that the entry of a check already has.
func Unchanged(entry v1alpha1.AdmissionCheckState) Answer {
	return Answer{State: entry.State, Message: entry.Message, Updates: entry.PodSetUpdates}
}

// Requested is the answer for a unit whose request exists but is not recorded yet. The next answer contains what an
// autoscaler has reported since.
func Requested(in Input, request *Request) Answer {
	if request == nil {
		return Answer{}
	}
	answer := created(request)
	answer.Updates = updates(Managed(in.Unit, in.Config), request)
	return answer
}
