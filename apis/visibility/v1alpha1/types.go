package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// QueueUnitReview asks why a unit waits. Create it with dryRun=All; the answer is in its status.
//
// +genclient
// +genclient:onlyVerbs=create
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

// QueueUnitReviewList is a list of QueueUnitReviews. It is always empty, because reviews are not stored.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type QueueUnitReviewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QueueUnitReview `json:"items"`
}

// QueueUnitReviewSpec is the question why a unit waits.
type QueueUnitReviewSpec struct {
	// unit is the name of the QueueUnit in the namespace of the review.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Unit string `json:"unit"`
}

// QueueUnitReviewStatus is the answer why a unit waits.
type QueueUnitReviewStatus struct {
	// observedTime is the time of the state that the answer describes. It is at most a few seconds old.
	// +required
	ObservedTime metav1.MicroTime `json:"observedTime"`
	// phase is the phase of the unit.
	// +optional
	Phase string `json:"phase,omitempty"`
	// queue is the name of the Queue of the unit. It is empty if no quota applies.
	// +optional
	Queue string `json:"queue,omitempty"`
	// quota is the path of the quota of the unit.
	// +optional
	Quota string `json:"quota,omitempty"`
	// policy is the policy of the queue.
	// +optional
	Policy string `json:"policy,omitempty"`
	// priority is the priority of the unit as it counts in the queue.
	// +optional
	Priority int32 `json:"priority"`
	// requests is what the unit is charged while it holds quota. The key kube-queue/max-jobs is not listed.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// reason is why the unit waits now. It is empty if the unit does not wait, or is about to be tried. It may be more
	// recent than the status of the unit.
	// +optional
	Reason wellknown.Reason `json:"reason,omitempty"`
	// message describes the reason.
	// +optional
	Message string `json:"message,omitempty"`
	// position is the place of the unit among those that wait in its queue; 1 is the first. It is 0 if the unit does not
	// wait in a queue.
	// +optional
	Position int32 `json:"position,omitempty"`
	// waiting is the number of units that wait in the queue.
	// +optional
	Waiting int32 `json:"waiting,omitempty"`
	// ahead are the first units that are ahead of the unit in its queue, at most 10, in the order of the queue.
	// +listType=atomic
	// +optional
	Ahead []UnitSummary `json:"ahead,omitempty"`
	// aheadHidden is the number of units ahead of the unit that the caller may not list.
	// +optional
	AheadHidden int32 `json:"aheadHidden,omitempty"`
	// lacks is everything that the unit lacks, from its own quota to the root.
	// +listType=atomic
	// +optional
	Lacks []Lack `json:"lacks,omitempty"`
	// holders are the quotas that hold what the unit lacks, the greatest amount first, at most 20.
	// +listType=atomic
	// +optional
	Holders []Holder `json:"holders,omitempty"`
	// holdingUnits are the units that hold most of what the unit lacks, the greatest amount first, at most 10, of those
	// that the caller may list.
	// +listType=atomic
	// +optional
	HoldingUnits []UnitSummary `json:"holdingUnits,omitempty"`
	// wouldAdmit are changes each of which would admit the unit if nothing else changed. It is empty if none was
	// found, or if the unit does not wait.
	// +listType=atomic
	// +optional
	WouldAdmit []Remedy `json:"wouldAdmit,omitempty"`
	// until is when the unit gets what it lacks at the latest, if that follows from the maximum execution times of the
	// units that hold it, or when its backoff ends.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// UnitSummary describes a unit in an answer.
type UnitSummary struct {
	// namespace is the namespace of the unit.
	// +required
	Namespace string `json:"namespace"`
	// name is the name of the unit.
	// +required
	Name string `json:"name"`
	// kind is the kind of the job of the unit.
	// +optional
	Kind string `json:"kind,omitempty"`
	// queue is the name of the Queue of the unit.
	// +optional
	Queue string `json:"queue,omitempty"`
	// phase is the phase of the unit.
	// +optional
	Phase string `json:"phase,omitempty"`
	// reason is why the unit waits.
	// +optional
	Reason wellknown.Reason `json:"reason,omitempty"`
	// position is the place of the unit among those that wait in its queue; 0 if it does not wait.
	// +optional
	Position int32 `json:"position,omitempty"`
	// priority is the priority of the unit as it counts in the queue.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// requests is what the unit requests or, if it holds quota, what it is charged.
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
}

// Lack is an amount that a unit lacks at a limit.
type Lack struct {
	// quota is the path of the node, or the namespace and name of the ResourceQuota, that has the limit.
	// +required
	Quota string `json:"quota"`
	// bound is the limit: Max, Min for jobs that are not preemptible, or Reserved for quota that is kept for others.
	// +required
	Bound string `json:"bound"`
	// resource is the name of the resource. kube-queue/max-jobs is the number of units that hold quota.
	// +required
	Resource string `json:"resource"`
	// requested, used and limit are amounts of the resource.
	// +required
	Requested string `json:"requested"`
	// used is what is used at the limit.
	// +required
	Used string `json:"used"`
	// limit is the limit.
	// +required
	Limit string `json:"limit"`
	// missing is what must be freed, or added to the limit, before the unit alone fits.
	// +required
	Missing string `json:"missing"`
}

// Holder is what one quota holds of the resources that a unit lacks.
type Holder struct {
	// quota is the path of the quota.
	// +required
	Quota string `json:"quota"`
	// units is the number of units of the quota that hold any of the resources.
	// +optional
	Units int32 `json:"units,omitempty"`
	// hiddenUnits is how many of them the caller may not list.
	// +optional
	HiddenUnits int32 `json:"hiddenUnits,omitempty"`
	// used is what the quota holds of the resources that the unit lacks.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// borrowed is the part of used that is above the guarantee of the quota.
	// +optional
	Borrowed corev1.ResourceList `json:"borrowed,omitempty"`
	// unqueued is the part of used that pods use that belong to no unit.
	// +optional
	Unqueued corev1.ResourceList `json:"unqueued,omitempty"`
}

// RemedyType is what would have to be done.
type RemedyType string

const (
	// RaiseQuota means to raise limits of quotas.
	RaiseQuota RemedyType = "RaiseQuota"
	// EndUnits means that units that hold quota end at the same time. If they end one after the other, another unit may
	// get what the first one frees.
	EndUnits RemedyType = "EndUnits"
	// LowerRequest means that the job requests less.
	LowerRequest RemedyType = "LowerRequest"
	// ChangeObject means to change another object, which the message names.
	ChangeObject RemedyType = "ChangeObject"
	// Wait means to wait until a time, or until others have acted.
	Wait RemedyType = "Wait"
)

// Remedy is a change that would admit a unit.
type Remedy struct {
	// type is what would have to be done.
	// +required
	Type RemedyType `json:"type"`
	// message says it in a sentence.
	// +required
	Message string `json:"message"`
	// changes are the limits to raise, all of them, or the requests to lower.
	// +listType=atomic
	// +optional
	Changes []QuotaChange `json:"changes,omitempty"`
	// units are the units that would have to end, or that the unit waits for, of those that the caller may list.
	// +listType=atomic
	// +optional
	Units []UnitSummary `json:"units,omitempty"`
	// hiddenUnits is the number of further units of that sort, which the caller may not list.
	// +optional
	HiddenUnits int32 `json:"hiddenUnits,omitempty"`
	// ahead is the number of units ahead of the unit that would be admitted as well.
	// +optional
	Ahead int32 `json:"ahead,omitempty"`
	// command is a command that makes the change, if there is one.
	// +optional
	Command string `json:"command,omitempty"`
}

// QuotaChange is a change of one amount of a quota or of a request.
type QuotaChange struct {
	// quota is the path of the node, or the namespace and name of the ResourceQuota. It is empty for a request.
	// +optional
	Quota string `json:"quota,omitempty"`
	// field is max, min or hard, or request.
	// +required
	Field string `json:"field"`
	// resource is the name of the resource.
	// +required
	Resource string `json:"resource"`
	// from and to are the amounts before and after the change.
	// +required
	From string `json:"from"`
	// to is the amount after the change.
	// +required
	To string `json:"to"`
}

// QueueReview asks who is in the queues, and in which order. Create it with dryRun=All; the answer is in its status.
//
// +genclient
// +genclient:onlyVerbs=create
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

// QueueReviewList is a list of QueueReviews. It is always empty, because reviews are not stored.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type QueueReviewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QueueReview `json:"items"`
}

// QueueReviewContent is what a QueueReview lists.
//
// +kubebuilder:validation:Enum=Queues;Groups;Units
type QueueReviewContent string

const (
	// ShowQueues lists queues.
	ShowQueues QueueReviewContent = "Queues"
	// ShowGroups lists groups of units that are alike.
	ShowGroups QueueReviewContent = "Groups"
	// ShowUnits lists units.
	ShowUnits QueueReviewContent = "Units"
)

// DefaultLimit is the greatest number of entries of an answer to a QueueReview or QuotaReview that sets no limit, and
// MaxLimit the greatest limit.
const (
	DefaultLimit = 500
	MaxLimit     = 1000
)

// QueueReviewSpec selects queues and units.
type QueueReviewSpec struct {
	// queue is the name of a Queue. If empty: the queues that have a unit of the selected namespaces and, for a caller
	// that may list Queues, all others.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Queue string `json:"queue,omitempty"`
	// allNamespaces selects units of all namespaces, and not only those of the namespace of the review. Units of
	// namespaces in which the caller may not list QueueUnits are counted in hidden.
	// +optional
	AllNamespaces bool `json:"allNamespaces,omitempty"`
	// phases selects units by their phase. If empty: all phases but Succeeded and Failed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Phases []string `json:"phases,omitempty"`
	// reasons selects units by why they wait. If empty: all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Reasons []string `json:"reasons,omitempty"`
	// kinds selects units by the kind of their job. If empty: all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Kinds []string `json:"kinds,omitempty"`
	// show is what is listed: Queues, with their figures; Groups of units that are alike; or Units. If empty: Queues.
	// +optional
	Show QueueReviewContent `json:"show,omitempty"`
	// limit is the greatest number of entries to list. 0 means 500.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Limit int32 `json:"limit,omitempty"`
	// offset is the number of entries to leave out at the beginning, which an earlier answer had.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Offset int32 `json:"offset,omitempty"`
}

// QueueReviewStatus describes queues and their units.
type QueueReviewStatus struct {
	// observedTime is the time of the state that the answer describes. It is at most a few seconds old.
	// +required
	ObservedTime metav1.MicroTime `json:"observedTime"`
	// queues are the selected queues, by name, if show is Queues. Otherwise, they are the queue that the spec names.
	// +listType=atomic
	// +optional
	Queues []QueueSummary `json:"queues,omitempty"`
	// groups are the selected units if show is Groups, grouped by namespace, queue, kind, phase, reason, priority and
	// requests, in the order of the queues and of the first unit of each group.
	// +listType=atomic
	// +optional
	Groups []UnitGroup `json:"groups,omitempty"`
	// units are the selected units if show is Units, in the order of the queues.
	// +listType=atomic
	// +optional
	Units []UnitSummary `json:"units,omitempty"`
	// total is the number of queues, groups or units that there are, with those before and after the listed ones.
	// +optional
	Total int32 `json:"total,omitempty"`
	// selected is the number of selected units that the caller may list.
	// +optional
	Selected int32 `json:"selected,omitempty"`
	// hidden is the number of selected units that the caller may not list.
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
	// stop is whether the queue is stopped: None, Hold or Drain.
	// +optional
	Stop string `json:"stop,omitempty"`
	// pending, reserved, dequeued and running are numbers of units.
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
	// headReason is why the first unit waits.
	// +optional
	HeadReason wellknown.Reason `json:"headReason,omitempty"`
	// highestPriority is the highest priority of the units that wait.
	// +optional
	HighestPriority *int32 `json:"highestPriority,omitempty"`
	// requested is the sum of what the units that wait request.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// held is the sum of what the units that hold quota are charged.
	// +optional
	Held corev1.ResourceList `json:"held,omitempty"`
}

// UnitGroup is a number of units that are alike.
type UnitGroup struct {
	// units is the number of units.
	// +required
	Units int32 `json:"units"`
	// first is the first of them in the order of the queue.
	// +required
	First UnitSummary `json:"first"`
}

// QuotaReview asks how a quota tree, or the ResourceQuotas, are used. Create it with dryRun=All; the answer is in its
// status.
//
// +genclient
// +genclient:onlyVerbs=create
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

// QuotaReviewList is a list of QuotaReviews. It is always empty, because reviews are not stored.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type QuotaReviewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QuotaReview `json:"items"`
}

// QuotaReviewSpec selects quotas.
type QuotaReviewSpec struct {
	// quota is the path of a node; it and all nodes below it are shown. If empty: all nodes, for a caller that may list
	// ElasticQuotaTrees, and otherwise the quotas of the namespace of the review and their ancestors.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Quota string `json:"quota,omitempty"`
	// limit is the greatest number of quotas to list. 0 means 500.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Limit int32 `json:"limit,omitempty"`
	// offset is the number of quotas to leave out at the beginning, which an earlier answer had.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Offset int32 `json:"offset,omitempty"`
}

// QuotaReviewStatus describes quotas.
type QuotaReviewStatus struct {
	// observedTime is the time of the state that the answer describes. It is at most a few seconds old.
	// +required
	ObservedTime metav1.MicroTime `json:"observedTime"`
	// quotas are the quotas, each before those below it.
	// +listType=atomic
	// +optional
	Quotas []QuotaSummary `json:"quotas,omitempty"`
	// total is the number of quotas that there are, with those before and after the listed ones.
	// +optional
	Total int32 `json:"total,omitempty"`
	// hidden is the number of quotas that are not shown, because the caller may not list ElasticQuotaTrees.
	// +optional
	Hidden int32 `json:"hidden,omitempty"`
}

// QuotaSummary describes how a quota is used.
type QuotaSummary struct {
	// path is the path of the node from the root, or the namespace and name of the ResourceQuota.
	// +required
	Path string `json:"path"`
	// queue is the name of the Queue of the node; empty if it has none.
	// +optional
	Queue string `json:"queue,omitempty"`
	// min is what is guaranteed to the node.
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`
	// max is the limit of the node.
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
	// used is what is used at and below the node. The key kube-queue/max-jobs is the number of units that hold quota.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// borrowed is the part of used above min.
	// +optional
	Borrowed corev1.ResourceList `json:"borrowed,omitempty"`
	// lent is the unused part of min that others use.
	// +optional
	Lent corev1.ResourceList `json:"lent,omitempty"`
	// unqueued is the part of used that pods use that belong to no unit.
	// +optional
	Unqueued corev1.ResourceList `json:"unqueued,omitempty"`
	// requested is what the units that wait at and below the node request.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// waiting is the number of units that wait at and below the node.
	// +optional
	Waiting int32 `json:"waiting"`
	// holding is the number of units that hold quota at and below the node.
	// +optional
	Holding int32 `json:"holding"`
}
