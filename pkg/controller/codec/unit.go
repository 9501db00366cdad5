package codec

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/bounds"
	jobkinds "kube-queue.dev/kube-queue/pkg/generated/kinds"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// UnitKind returns how to read QueueUnits.
func UnitKind() lenient.Kind {
	return lenient.Kind{
		GroupVersionKind: schedulingv1alpha1.SchemeGroupVersion.WithKind("QueueUnit"), Resource: "queueunits",
		New: func() lenient.Object { return &schedulingv1alpha1.QueueUnit{} },
	}
}

// Compactor reduces a unit to what the controller uses, because an informer with 100,000 complete
// units takes hundreds of megabytes.
type Compactor struct {
	// Keep, if set, copies the further fields of the spec that the source of the quota reads.
	Keep func(unit, kept *schedulingv1alpha1.QueueUnitSpec)
}

func (c Compactor) compact(object any) (any, error) {
	switch unit := object.(type) {
	case *schedulingv1alpha1.QueueUnit:
		err := bounds.Check(&unit.Spec)
		switch {
		case err == nil:
			return c.unit(unit), nil
		case unit.Status.Phase.Ended():
			return c.within(unit), nil
		default:
			return c.beyond(unit, err), nil
		}
	case *lenient.Unreadable:
		return c.unreadable(unit), nil
	default:
		return object, nil
	}
}

// Compacted is compact for an object that was read from the API server.
func (c Compactor) Compacted(object lenient.Object) lenient.Object {
	compact, _ := c.compact(object) // never fails for objects of this type
	return compact.(lenient.Object)
}

func (c Compactor) unit(unit *schedulingv1alpha1.QueueUnit) *schedulingv1alpha1.QueueUnit {
	compact := &schedulingv1alpha1.QueueUnit{
		ObjectMeta: compactMeta(&unit.ObjectMeta),
		Status:     schedulingv1alpha1.QueueUnitStatus{Phase: unit.Status.Phase},
	}
	if unit.Status.Phase.Ended() {
		// The remaining pods are charged where the unit was.
		compact.Spec.ConsumerRef, compact.Spec.QuotaName = unit.Spec.ConsumerRef, unit.Spec.QuotaName
		compact.Status.Quota, compact.Status.Attempts, compact.Status.Reservations = unit.Status.Quota, unit.Status.Attempts, unit.Status.Reservations
		return compact
	}
	compact.Spec = schedulingv1alpha1.QueueUnitSpec{
		Priority: unit.Spec.Priority, SubmissionTime: placeOf(unit), Resource: unit.Spec.Resource,
		Active: unit.Spec.Active, Preemptible: unit.Spec.Preemptible, QuotaName: unit.Spec.QuotaName,
		MaximumExecutionTimeSeconds: unit.Spec.MaximumExecutionTimeSeconds, ExpectedRunTimeSeconds: unit.Spec.ExpectedRunTimeSeconds,
		Unstoppable: unit.Spec.Unstoppable, Growth: unit.Spec.Growth,
	}
	ref := unit.Spec.ConsumerRef
	compact.Spec.ConsumerRef.APIVersion, compact.Spec.ConsumerRef.Kind = ref.APIVersion, ref.Kind
	if unit.Status.Phase.HoldsQuota() || unit.Status.Attempts > 0 || unit.Status.Reservations > 0 || lifecycle.RestoredFor(unit) > 0 { // others have no pods
		compact.Spec.ConsumerRef = ref
	}
	if c.Keep != nil {
		c.Keep(&unit.Spec, &compact.Spec)
	}
	c.keepElastic(unit, compact)
	compact.Status.Reason = unit.Status.Reason
	if quota.HasLastValidNote(unit.Status.Message) {
		compact.Status.Reason = "" // so that it is written again, with or without the note
	}
	compact.Status.Quota = unit.Status.Quota
	switch unit.Status.Reason {
	case wellknown.ReasonInvalidRequest, // job-extensions has written why
		wellknown.ReasonBackoff: // its cause is not in any other field
		compact.Status.Message = unit.Status.Message
	}
	compact.Status.Attempts = unit.Status.Attempts
	compact.Status.Reservations, compact.Status.AdmissionChecks = unit.Status.Reservations, compactChecks(unit.Status.AdmissionChecks)
	compact.Status.DequeueTime, compact.Status.RenewTime = unit.Status.DequeueTime, unit.Status.RenewTime
	compact.Status.RequeueState = unit.Status.RequeueState
	if evicted := lifecycle.EvictedOf(unit); evicted != nil {
		compact.Status.Conditions = []metav1.Condition{{Type: evicted.Type, Status: evicted.Status, Reason: evicted.Reason, Message: evicted.Message,
			LastTransitionTime: evicted.LastTransitionTime}}
		if lifecycle.EvictionOf(unit).UnderWay() {
			compact.Status.EvictedFor = unit.Status.EvictedFor
		}
	}
	if rejection := lifecycle.RejectionOf(unit); rejection != nil {
		compact.Status.Conditions = append(compact.Status.Conditions, *rejection)
	}
	if lifecycle.AwaitsPods(unit) {
		compact.Status.Conditions = append(compact.Status.Conditions, metav1.Condition{Type: wellknown.ConditionPodsReady, Status: metav1.ConditionFalse})
	}
	if lifecycle.IsOverQuota(unit) {
		compact.Status.Conditions = append(compact.Status.Conditions, metav1.Condition{Type: wellknown.ConditionOverQuota, Status: metav1.ConditionTrue})
	}
	if lifecycle.IsUnscheduled(unit) {
		compact.Status.Conditions = append(compact.Status.Conditions, metav1.Condition{Type: wellknown.ConditionPodsScheduled, Status: metav1.ConditionFalse})
	}
	return compact
}

// compactChecks copies what the checks have decided.
func compactChecks(states []schedulingv1alpha1.AdmissionCheckState) []schedulingv1alpha1.AdmissionCheckState {
	var compact []schedulingv1alpha1.AdmissionCheckState
	for i := range states {
		state := states[i]
		state.PodSetUpdates = nil // only the release reads them
		compact = append(compact, state)
	}
	return compact
}

// isByHand reports whether a user created the unit with this reference.
func isByHand(ref *schedulingv1alpha1.ConsumerReference) bool {
	return ref.APIVersion != "" && jobkinds.ByHand(ref.APIVersion, ref.Kind)
}

// isGrowth reports whether a unit is for pods that its job adds. Users cannot create such units.
func isGrowth(spec *schedulingv1alpha1.QueueUnitSpec) bool {
	return spec.Growth && !isByHand(&spec.ConsumerRef)
}

// placeOf returns the submissionTime that decides the place of a unit.
func placeOf(unit *schedulingv1alpha1.QueueUnit) *metav1.MicroTime {
	if unit.Spec.SubmissionTime == nil {
		return nil
	}
	ref := &unit.Spec.ConsumerRef
	at := arrival.Submitted(jobkinds.ByHand(ref.APIVersion, ref.Kind), unit.Spec.SubmissionTime.Time, unit.CreationTimestamp.Time)
	return &metav1.MicroTime{Time: at}
}

func compactMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, Generation: meta.Generation,
		ResourceVersion: meta.ResourceVersion, CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
		Annotations: lifecycle.Restored(arrival.Annotate(nil, arrival.After(meta.Annotations)), meta.Annotations[wellknown.ReleasedAnnotation]),
	}
}

// Reader converts QueueUnits for the core.
type Reader struct {
	Compactor
	// Demand returns what a unit is charged while it holds quota, from the source of the quota.
	Demand func(*schedulingv1alpha1.QueueUnit) (quota.Demand, error)
	Kinds  *Kinds
	// Renewal limits how long hand-made units hold quota. Without a timeout there is no limit.
	Renewal scheduler.Renewal
}

// ReadComplete converts an object that was read from the API server and not compacted.
func (r Reader) ReadComplete(object lenient.Object) (scheduler.Unit, error) {
	return r.Read(r.Compacted(object))
}

// Read converts a unit or an Unreadable.
func (r Reader) Read(object lenient.Object) (scheduler.Unit, error) {
	switch unit := object.(type) {
	case *schedulingv1alpha1.QueueUnit:
		return r.readUnless(unit, nil)
	case *lenient.Unreadable:
		return r.readPartial(unit)
	default:
		return scheduler.Unit{}, fmt.Errorf("unexpected object of type %T, want a QueueUnit", object)
	}
}

// readUnless converts a unit. If its request is invalid or it has a fault, the unit is held and explains why.
func (r Reader) readUnless(unit *schedulingv1alpha1.QueueUnit, fault error) (scheduler.Unit, error) {
	version, err := Version(unit)
	if err != nil {
		return scheduler.Unit{}, err
	}
	owner, label := holderOf(&unit.Spec.ConsumerRef)
	u := scheduler.Unit{
		Key:    unit.Namespace + "/" + unit.Name,
		Reason: unit.Status.Reason,
		Facts: scheduler.Facts{
			UID: string(unit.UID), Version: version,
			Owner: owner, Label: label,
			Kind:      r.Kinds.of(&unit.Spec.ConsumerRef),
			QuotaName: unit.Spec.QuotaName, Priority: unit.Spec.Priority, Submitted: submitted(unit),
			Phase: phaseOf(unit.Status.Phase), Attempts: unit.Status.Attempts, Quota: unit.Status.Quota,
			MaxSeconds: ptr.Deref(unit.Spec.MaximumExecutionTimeSeconds, 0),
			Expected:   scheduler.ExpectedOf(ptr.Deref(unit.Spec.ExpectedRunTimeSeconds, 0)),
			Inactive:   !ptr.Deref(unit.Spec.Active, true), Unstoppable: unit.Spec.Unstoppable != "" && !isByHand(&unit.Spec.ConsumerRef),
			OverQuota:   unit.Status.Phase.HoldsQuota() && lifecycle.IsOverQuota(unit),
			Unscheduled: unit.Status.Phase.HoldsQuota() && lifecycle.IsUnscheduled(unit),
			AwaitsPods:  lifecycle.AwaitsPods(unit),
			Growth:      isGrowth(&unit.Spec),
			Over:        unit.Status.Phase == schedulingv1alpha1.PhaseRunning && unit.Status.Reason == wellknown.ReasonPodsRemain,
		},
	}
	if unit.Status.DequeueTime != nil {
		u.DequeuedAt = unit.Status.DequeueTime.Time
	}
	switch attempt := lifecycle.RestoredFor(unit); {
	case isByHand(&unit.Spec.ConsumerRef):
		u.Renewal = r.renewalOf(unit)
	case attempt > 0:
		u.Restored, u.Attempts = true, attempt-1
	}
	admitted := unit
	if u.Over { // charge only its pods, but count it as a job
		admitted = unit.DeepCopy()
		// An empty pod set, because a unit without pod sets counts as one pod.
		admitted.Spec.Resource, admitted.Spec.PodSets = nil, []schedulingv1alpha1.PodSet{{}}
	}
	u.Demand, err = r.Demand(admitted)
	if err == nil && !u.Over {
		u.Elastic, err = r.elastic(unit, u.Demand)
	}
	if fault != nil {
		err = fault
	}
	u.Checking = checkingOf(unit)
	r.hold(&u, unit, err)
	// The phase Backoff can end earlier: a unit that is held for another reason shows that reason.
	if state := unit.Status.RequeueState; state != nil && state.RequeueAt != nil {
		u.Requeues, u.RequeueAt = state.Count, state.RequeueAt.Time
		if unit.Status.Reason == wellknown.ReasonBackoff && unit.Status.Message != "" {
			u.Backoff = &quota.Refusal{Reason: wellknown.ReasonBackoff, Sentence: unit.Status.Message}
		}
	}
	return u, nil
}

// renewalOf returns how long a hand-made unit holds quota; nil for no limit. Once it is evicted, its owner can no longer
// prolong that.
func (r Reader) renewalOf(unit *schedulingv1alpha1.QueueUnit) *scheduler.Renewal {
	if r.Renewal.Timeout == 0 {
		return nil
	}
	renewal := r.Renewal
	if unit.Status.RenewTime != nil {
		renewal.At = unit.Status.RenewTime.Time
		if evicted := lifecycle.EvictedOf(unit); lifecycle.EvictionOf(unit).UnderWay() && evicted.LastTransitionTime.Time.Before(renewal.At) {
			renewal.At = evicted.LastTransitionTime.Time
		}
	}
	return &renewal
}

// hold sets the state of an eviction and why a unit must not be tried.
func (r Reader) hold(u *scheduler.Unit, unit *schedulingv1alpha1.QueueUnit, invalid error) {
	inactive := "spec.active is false; run kubectl kube-queue unpause, or set annotation " + wellknown.ActiveAnnotation + " of the job to \"true\""
	eviction := lifecycle.EvictionOf(unit)
	u.Evicted, u.Stopped = eviction.UnderWay(), eviction.Stopped()
	if evicted := lifecycle.EvictedOf(unit); evicted != nil {
		u.Eviction = scheduler.Eviction{At: evicted.LastTransitionTime.Time, For: string(unit.Status.EvictedFor)}
	}
	switch eviction {
	case lifecycle.EvictionByUser:
		u.Held = &quota.Refusal{Reason: wellknown.ReasonSuspendedByUser,
			Sentence: "the job was suspended by hand after its release; set suspend to false to queue it again, or delete it"}
	case lifecycle.EvictionChanged:
		u.Held = &quota.Refusal{Reason: wellknown.ReasonJobChanged,
			Sentence: "the job changed after its admission and was not released; the unit is queued again with the new request"}
	case lifecycle.EvictionStopped:
		if why := lifecycle.EvictedOf(unit).Message; why != "" {
			inactive = why + "; " + inactive
		}
	}
	switch {
	case u.Held != nil:
	case unit.DeletionTimestamp != nil:
		u.Held = &quota.Refusal{Reason: wellknown.ReasonTerminating,
			Sentence: "the unit is being deleted, but a finalizer keeps it; remove the finalizer, and the job gets another unit"}
	case u.Inactive && u.Reason == wellknown.ReasonInvalidRequest && !isByHand(&unit.Spec.ConsumerRef):
		// job-extensions removes this when the job is valid. The unit shows no queue until the controller writes this
		// again with its queue.
		u.Held = &quota.Refusal{Reason: wellknown.ReasonInvalidRequest, Sentence: unit.Status.Message}
		u.HeldReported = !reportsNoPlace(unit)
	case u.Inactive:
		u.Held = &quota.Refusal{Reason: wellknown.ReasonInactive, Sentence: inactive}
	case invalid != nil: // not of an inactive unit, from which job-extensions would remove it
		u.Held = &quota.Refusal{Reason: wellknown.ReasonInvalidRequest, Sentence: invalid.Error()}
	default:
		if rejection := lifecycle.RejectionOf(unit); rejection != nil {
			u.Held = &quota.Refusal{Reason: wellknown.ReasonAdmissionCheckRejected, Sentence: rejection.Message}
		}
	}
}

// reportsNoPlace reports whether job-extensions, which knows no queues, has reported an invalid request and the
// controller has not written the unit's queue yet.
func reportsNoPlace(unit *schedulingv1alpha1.QueueUnit) bool {
	return unit.Status.Reason == wellknown.ReasonInvalidRequest && unit.Status.Quota == "" && unit.Status.Message != ""
}

// checkingOf returns what the admission checks of a unit have decided; nil if it never had any.
func checkingOf(unit *schedulingv1alpha1.QueueUnit) *scheduler.Checking {
	if unit.Status.Reservations == 0 && len(unit.Status.AdmissionChecks) == 0 {
		return nil
	}
	checking := &scheduler.Checking{Reservations: unit.Status.Reservations, Generation: unit.Generation}
	for i := range unit.Status.AdmissionChecks {
		state := &unit.Status.AdmissionChecks[i]
		seen := scheduler.CheckState{Name: state.Name, Verdict: verdictOf(state.State), Message: state.Message}
		if !state.LastTransitionTime.IsZero() {
			seen.Since = state.LastTransitionTime.UnixMicro()
		}
		checking.States = append(checking.States, seen)
	}
	return checking
}

func verdictOf(state schedulingv1alpha1.CheckState) scheduler.Verdict {
	switch state {
	case schedulingv1alpha1.CheckReady:
		return scheduler.Ready
	case schedulingv1alpha1.CheckRetry:
		return scheduler.Retry
	case schedulingv1alpha1.CheckRejected:
		return scheduler.Rejected
	default:
		return scheduler.Pending
	}
}

func submitted(unit *schedulingv1alpha1.QueueUnit) int64 {
	if unit.Spec.SubmissionTime != nil {
		return unit.Spec.SubmissionTime.UnixMicro()
	}
	return unit.CreationTimestamp.UnixMicro()
}

func phaseOf(p schedulingv1alpha1.QueueUnitPhase) scheduler.Phase {
	switch {
	case p == schedulingv1alpha1.PhaseReserved:
		return scheduler.Reserved
	case p == schedulingv1alpha1.PhaseDequeued:
		return scheduler.Dequeued
	case p == schedulingv1alpha1.PhaseRunning:
		return scheduler.Running
	case p.Ended():
		return scheduler.Ended
	default:
		return scheduler.Waiting
	}
}

// Version returns the resource version as a number. Versions of one resource can be compared
// (Kubernetes KEP-5504).
func Version(object metav1.Object) (uint64, error) {
	return ParseVersion(object.GetNamespace()+"/"+object.GetName(), object.GetResourceVersion())
}

func ParseVersion(key, resourceVersion string) (uint64, error) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion of %s is not a number: %w", key, err)
	}
	return version, nil
}
