package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// QueueUnitReview asks why a unit waits, or what would happen to a new one. Create it with dryRun=All.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:validation:XValidation:rule="has(self.status)",message="nothing has answered; create the review with dryRun=All (kubectl create --dry-run=server), and ask an administrator whether kube-queue-controller answers reviews"
type QueueUnitReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the question.
	// +required
	Spec QueueUnitReviewSpec `json:"spec"`
	// status is the answer. Only kube-queue-controller sets it.
	// +optional
	Status *QueueUnitReviewStatus `json:"status,omitempty"`
}

// QueueUnitReviewSpec names a unit, or describes a new one.
//
// +kubebuilder:validation:XValidation:rule="has(self.unit) != has(self.newUnit)",message="set either unit or newUnit"
type QueueUnitReviewSpec struct {
	// unit is the name of a QueueUnit in the namespace of the review.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Unit string `json:"unit,omitempty"`
	// newUnit is the spec of a unit that does not exist. The answer says what would happen if it were created now in
	// the namespace of the review.
	// +optional
	NewUnit *schedulingv1alpha1.QueueUnitSpec `json:"newUnit,omitempty"`
}

// QueueUnitReviewStatus explains why a unit waits.
type QueueUnitReviewStatus struct {
	// observedTime is the time of the state that the answer describes.
	// +required
	ObservedTime metav1.MicroTime `json:"observedTime"`
	// phase is the phase of the unit. A new unit that would be admitted immediately is Dequeued.
	// +optional
	Phase string `json:"phase,omitempty"`
	// queue is the Queue of the unit.
	// +optional
	Queue string `json:"queue,omitempty"`
	// quota is the path of the quota group.
	// +optional
	Quota string `json:"quota,omitempty"`
	// policy is the policy of the queue.
	// +optional
	Policy string `json:"policy,omitempty"`
	// priority is the priority of the unit, as capped by the queue.
	// +optional
	Priority int32 `json:"priority"`
	// requests is what the unit is charged while it holds quota.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// reason is why the unit waits. It can be newer than the unit's status.
	// +optional
	Reason wellknown.Reason `json:"reason,omitempty"`
	// message explains the reason.
	// +optional
	Message string `json:"message,omitempty"`
	// position is the place of the unit among the waiting units of its queue, or 0 if it does not
	// wait.
	// +optional
	Position int32 `json:"position,omitempty"`
	// waiting is the number of units that wait in the queue.
	// +optional
	Waiting int32 `json:"waiting,omitempty"`
	// ahead lists the first units ahead in the queue, up to 10.
	// +listType=atomic
	// +optional
	Ahead []UnitSummary `json:"ahead,omitempty"`
	// aheadHidden is the number of units ahead that the caller cannot list.
	// +optional
	AheadHidden int32 `json:"aheadHidden,omitempty"`
	// lacks lists everything that the unit lacks, from its own quota to the root.
	// +listType=atomic
	// +optional
	Lacks []Lack `json:"lacks,omitempty"`
	// holders lists the quotas that hold most of what the unit lacks, up to 20.
	// +listType=atomic
	// +optional
	Holders []Holder `json:"holders,omitempty"`
	// holdingUnits lists the units that hold most of what the unit lacks, up to 10.
	// +listType=atomic
	// +optional
	HoldingUnits []UnitSummary `json:"holdingUnits,omitempty"`
	// wouldAdmit lists changes. Each one would admit the unit if nothing else changed.
	// +listType=atomic
	// +optional
	WouldAdmit []Remedy `json:"wouldAdmit,omitempty"`
	// until is the latest time when the unit has what it lacks, or when its backoff ends, if known.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// start is when the unit is expected to start, if that is known.
	// +optional
	Start *StartEstimate `json:"start,omitempty"`
	// startPods is the number of pods that a new unit is expected to start with in the pod set that can start with
	// fewer, if it is not the full number.
	// +optional
	StartPods int32 `json:"startPods,omitempty"`
	// withAllPods is what would happen if a new unit that is expected to start with fewer pods waited for all of them.
	// +optional
	WithAllPods *AllPodsAnswer `json:"withAllPods,omitempty"`
}

// AllPodsAnswer is what would happen to a unit that waits for all its pods.
type AllPodsAnswer struct {
	// reason is why it would wait.
	// +optional
	Reason wellknown.Reason `json:"reason,omitempty"`
	// message explains the reason.
	// +optional
	Message string `json:"message,omitempty"`
	// start is when it is expected to start, if that is known.
	// +optional
	Start *StartEstimate `json:"start,omitempty"`
}

// StartEstimate is when a waiting unit is expected to start. It follows from the run times of earlier jobs and from
// maximum execution times. It is rounded, and is not a promise.
type StartEstimate struct {
	// time is the expected time.
	// +required
	Time metav1.Time `json:"time"`
	// earliest is the start of the range in which most units have started after such an estimate.
	// +required
	Earliest metav1.Time `json:"earliest"`
	// latest is the end of the range.
	// +required
	Latest metav1.Time `json:"latest"`
}

// UnitSummary describes a unit.
type UnitSummary struct {
	// namespace is the namespace of the unit.
	// +required
	Namespace string `json:"namespace"`
	// name is the name of the unit.
	// +required
	Name string `json:"name"`
	// kind is the kind of the job.
	// +optional
	Kind string `json:"kind,omitempty"`
	// queue is the Queue of the unit.
	// +optional
	Queue string `json:"queue,omitempty"`
	// phase is the phase of the unit.
	// +optional
	Phase string `json:"phase,omitempty"`
	// reason is why the unit waits.
	// +optional
	Reason wellknown.Reason `json:"reason,omitempty"`
	// position is the place of the unit among the waiting units of its queue.
	// +optional
	Position int32 `json:"position,omitempty"`
	// priority is the priority of the unit, as capped by the queue.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// requests is what the unit requests or is charged.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// submissionTime is when the job was submitted.
	// +optional
	SubmissionTime *metav1.Time `json:"submissionTime,omitempty"`
	// dequeueTime is when the unit was admitted.
	// +optional
	DequeueTime *metav1.Time `json:"dequeueTime,omitempty"`
	// endsBefore is when the maximum execution time of the unit ends.
	// +optional
	EndsBefore *metav1.Time `json:"endsBefore,omitempty"`
	// start is when the unit is expected to start, if it waits and that is known.
	// +optional
	Start *StartEstimate `json:"start,omitempty"`
}

// Lack is an amount that a unit lacks at a limit.
type Lack struct {
	// quota is the path of the node, or the namespace and name of the ResourceQuota.
	// +required
	Quota string `json:"quota"`
	// bound is the kind of limit: Max, Min (for non-preemptible jobs) or Reserved (for others).
	// +required
	Bound string `json:"bound"`
	// resource is the name of the resource, or kube-queue/max-jobs.
	// +required
	Resource string `json:"resource"`
	// requested is the amount that the unit requests.
	// +required
	Requested string `json:"requested"`
	// used is the amount in use.
	// +required
	Used string `json:"used"`
	// limit is the limit.
	// +required
	Limit string `json:"limit"`
	// missing is the amount to free, or to add to the limit, to make this unit fit.
	// +required
	Missing string `json:"missing"`
}

// Holder describes a quota that holds resources that a unit lacks.
type Holder struct {
	// quota is the path of the quota.
	// +required
	Quota string `json:"quota"`
	// units is the number of units in the quota that hold what the unit lacks.
	// +optional
	Units int32 `json:"units,omitempty"`
	// hiddenUnits is how many of these units the caller cannot list.
	// +optional
	HiddenUnits int32 `json:"hiddenUnits,omitempty"`
	// used is how much of it the quota holds.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// borrowed is the part of used above the guarantee.
	// +optional
	Borrowed corev1.ResourceList `json:"borrowed,omitempty"`
	// unqueued is the part of used for pods without a unit.
	// +optional
	Unqueued corev1.ResourceList `json:"unqueued,omitempty"`
}

// RemedyType is the type of a change.
type RemedyType string

const (
	// RaiseQuota means to raise quota limits.
	RaiseQuota RemedyType = "RaiseQuota"
	// EndUnits means that units that hold quota end at the same time.
	EndUnits RemedyType = "EndUnits"
	// LowerRequest means that the job requests less.
	LowerRequest RemedyType = "LowerRequest"
	// ChangeObject means to change another object, which the message names.
	ChangeObject RemedyType = "ChangeObject"
	// Wait means to wait until a time or for others to act.
	Wait RemedyType = "Wait"
)

// Remedy is a change that would admit a unit.
type Remedy struct {
	// type is the type of the change.
	// +required
	Type RemedyType `json:"type"`
	// message describes the change.
	// +required
	Message string `json:"message"`
	// changes lists all limits to raise or requests to lower.
	// +listType=atomic
	// +optional
	Changes []QuotaChange `json:"changes,omitempty"`
	// units lists the units that must end, or that the unit waits for.
	// +listType=atomic
	// +optional
	Units []UnitSummary `json:"units,omitempty"`
	// hiddenUnits is the number of such units that the caller cannot list.
	// +optional
	HiddenUnits int32 `json:"hiddenUnits,omitempty"`
	// ahead is the number of units ahead that would also be admitted.
	// +optional
	Ahead int32 `json:"ahead,omitempty"`
	// command makes the change.
	// +optional
	Command string `json:"command,omitempty"`
}

// QuotaChange is a change to an amount in a quota or request.
type QuotaChange struct {
	// quota is the path of the node, or the namespace and name of the ResourceQuota. Empty for a
	// request.
	// +optional
	Quota string `json:"quota,omitempty"`
	// field is one of max, min, hard and request.
	// +required
	Field string `json:"field"`
	// resource is the name of the resource.
	// +required
	Resource string `json:"resource"`
	// from is the amount before the change.
	// +required
	From string `json:"from"`
	// to is the amount after the change.
	// +required
	To string `json:"to"`
}

// QueueReview asks which units are in the queues, and in which order. Create it with dryRun=All.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:validation:XValidation:rule="has(self.status)",message="nothing has answered; create the review with dryRun=All (kubectl create --dry-run=server), and ask an administrator whether kube-queue-controller answers reviews"
type QueueReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the question.
	// +optional
	Spec QueueReviewSpec `json:"spec,omitempty"`
	// status is the answer. Only kube-queue-controller sets it.
	// +optional
	Status *QueueReviewStatus `json:"status,omitempty"`
}

// QueueReviewContent is what a QueueReview lists.
//
// +kubebuilder:validation:Enum=Queues;Groups;Units
type QueueReviewContent string

const (
	// ShowQueues lists queues with their counts.
	ShowQueues QueueReviewContent = "Queues"
	// ShowGroups lists groups of similar units.
	ShowGroups QueueReviewContent = "Groups"
	// ShowUnits lists units.
	ShowUnits QueueReviewContent = "Units"
)

// DefaultLimit is the default limit of a QueueReview or QuotaReview. MaxLimit is the greatest limit.
const (
	DefaultLimit = 500
	MaxLimit     = 1000
)

// QueueReviewSpec selects queues and units.
type QueueReviewSpec struct {
	// queue is the name of a Queue. If empty, the answer covers the queues with units in the
	// selected namespaces or, if the caller can list Queues, all queues.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Queue string `json:"queue,omitempty"`
	// allNamespaces selects units in all namespaces, not only in the review's namespace.
	// +optional
	AllNamespaces bool `json:"allNamespaces,omitempty"`
	// phases selects units by phase. If empty, all. Units that have ended are never listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Phases []string `json:"phases,omitempty"`
	// reasons selects units by reason.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Reasons []string `json:"reasons,omitempty"`
	// kinds selects units by job kind.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Kinds []string `json:"kinds,omitempty"`
	// show is what to list. Defaults to Queues.
	// +optional
	Show QueueReviewContent `json:"show,omitempty"`
	// limit is the maximum number of entries to list. 0 means 500.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Limit int32 `json:"limit,omitempty"`
	// offset is the number of entries to skip.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Offset int32 `json:"offset,omitempty"`
}

// QueueReviewStatus describes queues and their units.
type QueueReviewStatus struct {
	// observedTime is the time of the state that the answer describes.
	// +required
	ObservedTime metav1.MicroTime `json:"observedTime"`
	// queues lists the selected queues if show is Queues, otherwise the queue named in spec.
	// +listType=atomic
	// +optional
	Queues []QueueSummary `json:"queues,omitempty"`
	// groups lists the selected units if show is Groups. Units of a group have the same namespace,
	// queue, kind, phase, reason, priority and requests.
	// +listType=atomic
	// +optional
	Groups []UnitGroup `json:"groups,omitempty"`
	// units lists the selected units if show is Units.
	// +listType=atomic
	// +optional
	Units []UnitSummary `json:"units,omitempty"`
	// total is the number of entries before limit and offset.
	// +optional
	Total int32 `json:"total,omitempty"`
	// selected is the number of selected units that the caller can list.
	// +optional
	Selected int32 `json:"selected,omitempty"`
	// hidden is the number of selected units that the caller cannot list.
	// +optional
	Hidden int32 `json:"hidden,omitempty"`
}

// QueueSummary describes a queue.
type QueueSummary struct {
	// name is the name of the Queue.
	// +required
	Name string `json:"name"`
	// quota is the path of its quota.
	// +optional
	Quota string `json:"quota,omitempty"`
	// policy is the policy in force.
	// +optional
	Policy string `json:"policy,omitempty"`
	// stop is None, Hold or Drain.
	// +optional
	Stop string `json:"stop,omitempty"`
	// pending is the number of units that wait.
	// +optional
	Pending int32 `json:"pending"`
	// reserved is the number of units that hold quota and wait for admission checks.
	// +optional
	Reserved int32 `json:"reserved"`
	// dequeued is the number of units that hold quota and do not run yet.
	// +optional
	Dequeued int32 `json:"dequeued"`
	// running is the number of units that run.
	// +optional
	Running int32 `json:"running"`
	// headReason is why the front unit waits.
	// +optional
	HeadReason wellknown.Reason `json:"headReason,omitempty"`
	// highestPriority is the highest priority of the waiting units.
	// +optional
	HighestPriority *int32 `json:"highestPriority,omitempty"`
	// requested is what the waiting units request.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// held is what the units that hold quota are charged.
	// +optional
	Held corev1.ResourceList `json:"held,omitempty"`
}

// UnitGroup describes a group of similar units.
type UnitGroup struct {
	// units is the number of units.
	// +required
	Units int32 `json:"units"`
	// first is the first of these units in queue order.
	// +required
	First UnitSummary `json:"first"`
}

// QuotaReview asks how quota is used. Create it with dryRun=All.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:validation:XValidation:rule="has(self.status)",message="nothing has answered; create the review with dryRun=All (kubectl create --dry-run=server), and ask an administrator whether kube-queue-controller answers reviews"
type QuotaReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the question.
	// +optional
	Spec QuotaReviewSpec `json:"spec,omitempty"`
	// status is the answer. Only kube-queue-controller sets it.
	// +optional
	Status *QuotaReviewStatus `json:"status,omitempty"`
}

// QuotaReviewSpec selects quotas.
type QuotaReviewSpec struct {
	// quota is the path of a node. The answer covers it and all nodes below. If empty, the answer
	// covers all nodes or, if the caller cannot list ElasticQuotaTrees, the quotas of the namespace
	// and their ancestors.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Quota string `json:"quota,omitempty"`
	// limit is the maximum number of quotas to list. 0 means 500.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Limit int32 `json:"limit,omitempty"`
	// offset is the number of quotas to skip.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Offset int32 `json:"offset,omitempty"`
}

// QuotaReviewStatus describes quotas.
type QuotaReviewStatus struct {
	// observedTime is the time of the state that the answer describes.
	// +required
	ObservedTime metav1.MicroTime `json:"observedTime"`
	// quotas lists the quotas, parents first.
	// +listType=atomic
	// +optional
	Quotas []QuotaSummary `json:"quotas,omitempty"`
	// total is the number of quotas before limit and offset.
	// +optional
	Total int32 `json:"total,omitempty"`
	// hidden is the number of quotas not shown because the caller cannot list ElasticQuotaTrees.
	// +optional
	Hidden int32 `json:"hidden,omitempty"`
	// message says why the quotas are those of the last valid tree, if the current tree is invalid. It is only for callers
	// who can list ElasticQuotaTrees.
	// +optional
	Message string `json:"message,omitempty"`
}

// QuotaSummary describes how a quota is used.
type QuotaSummary struct {
	// path is the path of the node, or the namespace and name of the ResourceQuota.
	// +required
	Path string `json:"path"`
	// queue is the Queue of the node.
	// +optional
	Queue string `json:"queue,omitempty"`
	// min is the guarantee of the node.
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`
	// max is the limit of the node.
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
	// used is the amount in use at and below the node. kube-queue/max-jobs is the number of units
	// that hold quota.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// borrowed is the part of used above the guarantee.
	// +optional
	Borrowed corev1.ResourceList `json:"borrowed,omitempty"`
	// lent is the unused part of the guarantee that others use.
	// +optional
	Lent corev1.ResourceList `json:"lent,omitempty"`
	// unqueued is the part of used for pods without a unit.
	// +optional
	Unqueued corev1.ResourceList `json:"unqueued,omitempty"`
	// requested is what the units that wait there request.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// waiting is the number of units that wait there.
	// +optional
	Waiting int32 `json:"waiting"`
	// holding is the number of units that hold quota there.
	// +optional
	Holding int32 `json:"holding"`
}
