package audit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// Keys of the public API that is checked.
const (
	annotationSuspend = "scheduling.x-k8s.io/suspend"
	labelQuotaName    = "kube-queue/quota-name"
	labelManaged      = "kube-queue/managed"
	labelKueue        = "kueue.x-k8s.io/queue-name"
)

// jobFacts describe a job after a write.
type jobFacts struct {
	kind       *Kind
	suspended  bool
	annotation string // value of the suspend annotation
	released   string // value of the annotation with the admission that it was released for
	marked     bool   // opted in
	foreign    bool   // managed by another queue or controller
	unholdable bool
	deleting   bool
	owner      metav1.OwnerReference // its controller
	quotaName  string
	end        Ending
	running    bool
	state      string
	steered    string // values of the keys in steering
}

// steering lists the keys with which users change a job's order in its queue.
var steering = []string{"scheduling.x-k8s.io/priority", "scheduling.x-k8s.io/priority-class", "scheduling.x-k8s.io/active"}

func (k *Kind) read(m *metav1.ObjectMeta, raw json.RawMessage) (any, error) {
	var o fields
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	f := &jobFacts{
		kind: k, suspended: at[bool](o, k.Suspend), annotation: m.Annotations[annotationSuspend], released: m.Annotations["kube-queue/released"],
		foreign: m.Labels[labelKueue] != "", deleting: m.DeletionTimestamp != nil,
		owner: controllerOf(m), quotaName: m.Labels[labelQuotaName],
		end: k.end(o), running: k.running(o), state: k.state(o),
		unholdable: k.unholdable != nil && k.unholdable(o),
	}
	f.marked = f.annotation == "true" || k.BySuspend && f.suspended && (k.also == nil || k.also(o))
	if k.managedBy != "" {
		by := at[string](o, k.managedBy)
		f.foreign = f.foreign || by != "" && by != k.Operator
	}
	for _, key := range steering {
		f.steered += m.Annotations[key] + "," + m.Labels[key] + ","
	}
	return f, nil
}

func controllerOf(m *metav1.ObjectMeta) metav1.OwnerReference {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return *owner
	}
	return metav1.OwnerReference{}
}

// withParts are the kinds whose operators create other jobs as parts.
var withParts = []string{"JobSet", "TrainJob", "RayJob", "RayCluster", "MPIJob"}

// queued reports whether the object may be queued. Parts of other jobs may not; objects of any other controller may.
func (f *jobFacts) queued() bool {
	return !f.foreign && !slices.Contains(withParts, f.owner.Kind)
}

// unitFacts describe a QueueUnit after a write.
type unitFacts struct {
	schedulingv1alpha1.QueueUnit
	kind          *Kind // of its job; nil if it represents no job
	quotaName     string
	evicted       bool
	evictedReason string
	total         amounts
	pods          []podGroup
	bad           string // error in an amount
}

// Phases of a unit.
const (
	phaseEnqueued  = schedulingv1alpha1.PhaseEnqueued
	phaseReserved  = schedulingv1alpha1.PhaseReserved
	phaseDequeued  = schedulingv1alpha1.PhaseDequeued
	phaseRunning   = schedulingv1alpha1.PhaseRunning
	phaseBackoff   = schedulingv1alpha1.PhaseBackoff
	phaseSucceeded = schedulingv1alpha1.PhaseSucceeded
	phaseFailed    = schedulingv1alpha1.PhaseFailed
)

type phases = []schedulingv1alpha1.QueueUnitPhase

func readUnit(_ *metav1.ObjectMeta, raw json.RawMessage) (any, error) {
	u := &unitFacts{}
	if err := json.Unmarshal(raw, &u.QueueUnit); err != nil {
		*u = unitFacts{bad: err.Error()}
		if err := json.Unmarshal(withoutAmounts(raw), &u.QueueUnit); err != nil {
			return nil, err
		}
	}
	u.ManagedFields = nil // they are large
	ref := u.Spec.ConsumerRef
	group, version, ok := strings.Cut(ref.APIVersion, "/")
	if !ok {
		group, version = "", ref.APIVersion
	}
	u.kind = kindWhere(group, version, func(k *Kind) bool { return k.Kind == ref.Kind })
	u.Status.Phase = cmp.Or(u.Status.Phase, phaseEnqueued)
	u.quotaName = cmp.Or(u.Spec.QuotaName, u.Labels[labelQuotaName])
	if c := u.condition("Evicted"); c != nil {
		u.evicted, u.evictedReason = c.Status == metav1.ConditionTrue, c.Reason
	}
	u.total = amountsOf(u.Spec.Resource)
	for _, set := range u.Spec.PodSets {
		requests, count := amountsOf(set.Requests), u.admitted(set)
		u.total.addTimes(requests, count-int64(set.Count))
		u.pods = append(u.pods, podGroup{count, requests.times(count), amountsOf(set.Limits).times(count), false})
	}
	if len(u.Spec.PodSets) == 0 {
		u.pods = []podGroup{{requests: u.total}}
	}
	return u, nil
}

// withoutAmounts returns a unit without the fields that have quantities.
func withoutAmounts(raw json.RawMessage) json.RawMessage {
	var object fields
	_ = json.Unmarshal(raw, &object) // it is an object, because only its amounts are wrong
	if spec, is := object["spec"].(fields); is {
		delete(spec, "resource")
		delete(spec, "podSets")
	}
	raw, _ = json.Marshal(object)
	return raw
}

// admitted returns the number of pods of a pod set that the unit holds quota for.
func (u *unitFacts) admitted(podSet schedulingv1alpha1.PodSet) int64 {
	for _, set := range u.Status.AdmittedPodSets {
		if u.holds() && set.Name == podSet.Name {
			return int64(min(set.Count, podSet.Count))
		}
	}
	return int64(podSet.Count)
}

func (u *unitFacts) condition(name string) *metav1.Condition {
	return meta.FindStatusCondition(u.Status.Conditions, name)
}

func (u *unitFacts) is(condition string) bool {
	return meta.IsStatusConditionTrue(u.Status.Conditions, condition)
}

func (u *unitFacts) phase(any ...schedulingv1alpha1.QueueUnitPhase) bool {
	return slices.Contains(any, u.Status.Phase)
}

// holds reports whether the unit is in a phase that holds quota.
func (u *unitFacts) holds() bool {
	return u != nil && u.phase(phaseReserved, phaseDequeued, phaseRunning)
}

// podsRemain reports whether the unit shows that it holds quota only because parts of its job are left.
func (u *unitFacts) podsRemain() bool {
	return u.phase(phaseRunning) && u.Status.Reason == "PodsRemain"
}

func (u *unitFacts) ended() bool {
	return u.phase(phaseSucceeded, phaseFailed)
}

func (u *unitFacts) queued() bool {
	return u.phase(phaseEnqueued, phaseBackoff)
}

// active reports whether the unit may hold quota.
func (u *unitFacts) active() bool { return u.Spec.Active == nil || *u.Spec.Active }

// stopped reports whether the job has stopped after an eviction.
func (u *unitFacts) stopped() bool {
	return u.evicted && slices.Contains([]string{"Stopped", "SuspendedByUser", "JobChanged"}, u.evictedReason)
}

// podFacts describe a pod after a write.
type podFacts struct {
	owner    metav1.OwnerReference // its controller
	labelled string                // the job in the label of a pod without a controller
	kind     *Kind                 // the kind whose label names the job
	over     bool                  // it has ended
	gated    bool                  // it waits at a scheduling gate
	until    time.Time             // the end of the grace period of a pod that is being deleted, or zero
	podGroup                       // its amounts are read while the pod is new
}

func readPod(m *metav1.ObjectMeta, raw json.RawMessage) (any, error) {
	var o corev1.Pod
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	p := &podFacts{
		owner: controllerOf(m), over: o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed,
		gated: len(o.Spec.SchedulingGates) > 0, podGroup: podGroup{count: 1},
	}
	if m.DeletionTimestamp != nil && m.DeletionGracePeriodSeconds != nil {
		p.until = m.DeletionTimestamp.Add(time.Duration(*m.DeletionGracePeriodSeconds) * time.Second)
	}
	for _, k := range allKinds {
		if p.owner.UID == "" && k.podLabel != "" && m.Labels[k.podLabel] != "" {
			p.labelled, p.kind = m.Labels[k.podLabel], k
		}
	}
	// Requests are needed only when the pod is created.
	if o.Status.Phase == corev1.PodPending && (o.Spec.NodeName == "" || o.Status.StartTime == nil) {
		p.requests = amountsOf(resourcehelper.PodRequests(&o, resourcehelper.PodResourcesOptions{}))
		p.limits = amountsOf(resourcehelper.PodLimits(&o, resourcehelper.PodResourcesOptions{}))
	}
	return p, nil
}

// eventFacts identify the object of an event.
type eventFacts struct{ uid, namespace, name, reason, kind string }

func readEvent(_ *metav1.ObjectMeta, raw json.RawMessage) (any, error) {
	type reference struct{ Namespace, Name, UID string }
	var e struct {
		InvolvedObject, Regarding reference
		Reason, Type              string
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, err
	}
	of := cmp.Or(e.Regarding, e.InvolvedObject)
	return &eventFacts{of.UID, of.Namespace, of.Name, e.Reason, e.Type}, nil
}

// namespaceFacts tell whether jobs of a namespace are held without a mark.
type namespaceFacts struct{ managed bool }

func readNamespace(m *metav1.ObjectMeta, _ json.RawMessage) (any, error) {
	return &namespaceFacts{strings.EqualFold(m.Labels[labelManaged], "true")}, nil
}

// leaseFacts are the holder and the duration of the lease of a program.
type leaseFacts struct {
	holder string
	lasts  time.Duration
}

func readLease(m *metav1.ObjectMeta, raw json.RawMessage) (any, error) {
	if m.Namespace != "kube-queue" {
		return nil, nil
	}
	var o coordinationv1.Lease
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	l := &leaseFacts{}
	if o.Spec.HolderIdentity != nil {
		l.holder = *o.Spec.HolderIdentity
	}
	if o.Spec.LeaseDurationSeconds != nil {
		l.lasts = time.Duration(*o.Spec.LeaseDurationSeconds) * time.Second
	}
	return l, nil
}
