package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Queue holds the units of one quota group while they wait. kube-queue-controller creates and
// maintains the Queues in its own namespace, and never overwrites what an administrator sets
// in spec.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.status.policy`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name="Reserved",type=integer,JSONPath=`.status.reserved`
// +kubebuilder:printcolumn:name="Dequeued",type=integer,JSONPath=`.status.dequeued`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Front-Reason",type=string,JSONPath=`.status.headReason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Stop",type=string,JSONPath=`.spec.stop`,priority=1
// +kubebuilder:printcolumn:name="Quota",type=string,JSONPath=`.status.quota`,priority=1
// +kubebuilder:printcolumn:name="Highest-Priority",type=integer,JSONPath=`.status.highestPriority`,priority=1
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the settings of an administrator.
	// +optional
	Spec QueueSpec `json:"spec,omitempty"`
	// status reports the units of the queue.
	// +optional
	Status QueueStatus `json:"status,omitempty"`
}

// QueueList is a list of Queues.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type QueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Queue `json:"items"`
}

// QueuePolicy is the order in which the units of a queue are tried.
//
// +kubebuilder:validation:Enum=RoundRobin;Block;Priority
type QueuePolicy string

const (
	// PolicyRoundRobin tries units in turn. A refused unit backs off, and the units
	// behind it go first in the meantime.
	PolicyRoundRobin QueuePolicy = "RoundRobin"
	// PolicyBlock tries only the front unit. No unit passes it.
	PolicyBlock QueuePolicy = "Block"
	// PolicyPriority starts again at the first unit each time quota is freed. Later
	// units may pass a unit that does not fit.
	PolicyPriority QueuePolicy = "Priority"
)

// QueueStop is whether, and how, a queue is stopped.
//
// +kubebuilder:validation:Enum=None;Hold;Drain
type QueueStop string

const (
	// StopNone means that units are admitted.
	StopNone QueueStop = "None"
	// StopHold means that no unit is admitted.
	StopHold QueueStop = "Hold"
	// StopDrain means that no unit is admitted and that admitted units are evicted.
	StopDrain QueueStop = "Drain"
)

// QueueSpec holds the settings of an administrator.
type QueueSpec struct {
	// policy is the order in which the units are tried. If unset, it is the policy that
	// kube-queue-controller was started with.
	// +optional
	Policy QueuePolicy `json:"policy,omitempty"`
	// priority orders queues that share an ancestor quota node. The queue with the greater
	// priority goes first.
	// +optional
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	Priority int32 `json:"priority,omitempty"`
	// maxPriority caps the priority of the units of the queue: a unit with a greater priority is
	// ordered as if it had this one. If unset, priorities are not capped.
	// +optional
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	MaxPriority *int32 `json:"maxPriority,omitempty"`
	// stop stops the queue. With Hold, no unit is admitted. With Drain, units that were
	// admitted are evicted as well and wait again. With None, or if unset, the queue is not
	// stopped.
	// +optional
	Stop QueueStop `json:"stop,omitempty"`
	// preemption is how units of the queue are evicted for others. It has an effect with quota
	// backend elasticquota.
	// +optional
	Preemption *QueuePreemption `json:"preemption,omitempty"`
	// admissionChecks are the names of the AdmissionChecks that must be Ready before the job of a
	// unit is released. Units that were released before a check was added are not checked again.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	AdmissionChecks []string `json:"admissionChecks,omitempty"`
	// podsReadyTimeout is how long after the admission of a unit all pods of its job may take to
	// become ready. A job that takes longer is stopped and queued again, after 10s and then after
	// twice as long each time, up to 15m. If unset, pods may take as long as they need.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="podsReadyTimeout must be at least 1s"
	// +optional
	PodsReadyTimeout *metav1.Duration `json:"podsReadyTimeout,omitempty"`
	// blockUntilPodsReady, if true, admits no unit of the queue while another one is Reserved or has
	// pods that are not ready. It has an effect only with podsReadyTimeout.
	// +optional
	BlockUntilPodsReady bool `json:"blockUntilPodsReady,omitempty"`
}

// WithinQueuePreemption is which units of a queue are evicted for others of the same queue.
//
// +kubebuilder:validation:Enum=Never;LowerPriority
type WithinQueuePreemption string

const (
	// PreemptNever means that none is.
	PreemptNever WithinQueuePreemption = "Never"
	// PreemptLowerPriority means that units of a smaller priority are.
	PreemptLowerPriority WithinQueuePreemption = "LowerPriority"
)

// QueuePreemption is how units of a queue are evicted for others.
type QueuePreemption struct {
	// withinQueue is which units are evicted for others of the queue. With LowerPriority, a unit
	// that does not fit evicts units of a smaller priority. With Never, or if unset, it waits.
	// +optional
	WithinQueue WithinQueuePreemption `json:"withinQueue,omitempty"`
	// minRunTime is how long after its admission no unit of the queue is evicted for another
	// unit, of whatever queue. If unset, it is 30s. With 0s, units are not protected.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="minRunTime must not be negative"
	// +optional
	MinRunTime *metav1.Duration `json:"minRunTime,omitempty"`
	// maxPerMinute is the maximum number of units of the queue that are evicted for others in a
	// minute. If unset or 0, the number is not limited.
	// +kubebuilder:validation:Minimum=0
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	MaxPerMinute int32 `json:"maxPerMinute,omitempty"`
}

// QueueStatus reports the units of a queue.
type QueueStatus struct {
	// policy is the policy in force.
	// +optional
	Policy QueuePolicy `json:"policy,omitempty"`
	// quota is the path of the quota group. Its parts are joined by "/".
	// +optional
	Quota string `json:"quota,omitempty"`
	// pending is the number of units that wait for quota.
	// +kubebuilder:default=0
	// +optional
	Pending int32 `json:"pending"`
	// reserved is the number of units that hold quota and wait for their admission checks.
	// +kubebuilder:default=0
	// +optional
	Reserved int32 `json:"reserved"`
	// dequeued is the number of units that hold quota, whose jobs are released and do not run yet.
	// +kubebuilder:default=0
	// +optional
	Dequeued int32 `json:"dequeued"`
	// running is the number of units that hold quota and whose jobs run.
	// +kubebuilder:default=0
	// +optional
	Running int32 `json:"running"`
	// headReason is why the front unit waits.
	// +optional
	HeadReason wellknown.Reason `json:"headReason,omitempty"`
	// highestPriority is the greatest priority of the unit at the front and of the units that hold quota,
	// as limited by maxPriority. Owners choose the priorities of their jobs. If unset, there are no such
	// units.
	// +optional
	HighestPriority *int32 `json:"highestPriority,omitempty"`
}
