package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Queue contains the waiting units of a quota group. kube-queue-controller creates and maintains
// Queues in its own namespace. It does not overwrite spec.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=kqueue
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

	// spec defines how the queue behaves. Administrators write it.
	// +optional
	Spec QueueSpec `json:"spec,omitempty"`
	// status describes the units of the queue. kube-queue-controller writes it.
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

// QueuePolicy is the order in which units are tried.
//
// +kubebuilder:validation:Enum=RoundRobin;Block;Priority;ShortestFirst
type QueuePolicy string

const (
	// PolicyRoundRobin tries units in turn. After a refusal, a unit backs off.
	PolicyRoundRobin QueuePolicy = "RoundRobin"
	// PolicyBlock tries only the front unit. No unit passes it.
	PolicyBlock QueuePolicy = "Block"
	// PolicyPriority starts again at the first unit each time quota is freed. Later units can pass
	// it.
	PolicyPriority QueuePolicy = "Priority"
	// PolicyShortestFirst tries the units with the shortest maximum execution time first. Other units
	// can pass one that does not fit. Use it with reserveAfter.
	PolicyShortestFirst QueuePolicy = "ShortestFirst"
)

// QueueStop is whether and how a queue is stopped.
//
// +kubebuilder:validation:Enum=None;Hold;Drain
type QueueStop string

const (
	// StopNone means that units are admitted.
	StopNone QueueStop = "None"
	// StopHold means that no unit is admitted.
	StopHold QueueStop = "Hold"
	// StopDrain means that no unit is admitted and admitted units are evicted.
	StopDrain QueueStop = "Drain"
)

// QueueGrowth is what happens to pods that a job adds after its admission.
//
// +kubebuilder:validation:Enum=Count;Gate
type QueueGrowth string

const (
	// GrowthCount means that they run, and are charged.
	GrowthCount QueueGrowth = "Count"
	// GrowthGate means that they wait for quota.
	GrowthGate QueueGrowth = "Gate"
)

// QueueSpec defines how a queue behaves.
type QueueSpec struct {
	// policy is the order in which units are tried. Defaults to the --policy of
	// kube-queue-controller.
	// +optional
	Policy QueuePolicy `json:"policy,omitempty"`
	// priority orders queues that share an ancestor quota node. The queue with the highest priority
	// goes first.
	// +optional
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	Priority int32 `json:"priority,omitempty"`
	// maxPriority caps the priority of units in the queue.
	// +optional
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	MaxPriority *int32 `json:"maxPriority,omitempty"`
	// reserveAfter is how long a unit waits until quota is reserved for it, if it is the one that has
	// waited longest in the queue. Other units are then admitted only if they fit beside it, or end
	// before it can start by their maximum execution time. Never if unset. Only the elasticquota
	// backend uses it.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="reserveAfter must be at least 1s"
	// +optional
	ReserveAfter *metav1.Duration `json:"reserveAfter,omitempty"`
	// stop stops the queue. With Hold, no unit is admitted. Drain also evicts admitted units, which
	// then wait again. Defaults to None.
	// +optional
	Stop QueueStop `json:"stop,omitempty"`
	// preemption controls the eviction of units in this queue for others. Only the elasticquota
	// backend uses it.
	// +optional
	Preemption *QueuePreemption `json:"preemption,omitempty"`
	// admissionChecks lists AdmissionChecks that must be Ready before a job is released.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	AdmissionChecks []string `json:"admissionChecks,omitempty"`
	// growth is what happens to pods that a job adds after its admission. With Count, they run and
	// are charged. With Gate, they wait for quota at a scheduling gate, which requires the kind pod.
	// Defaults to Count.
	// +optional
	Growth QueueGrowth `json:"growth,omitempty"`
	// podsReadyTimeout is how long a job's pods can take to become ready after admission. A job
	// that takes longer is stopped and queued again after 10s. The delay doubles each time, up to
	// 15m. Unlimited if unset.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="podsReadyTimeout must be at least 1s"
	// +optional
	PodsReadyTimeout *metav1.Duration `json:"podsReadyTimeout,omitempty"`
	// blockUntilPodsReady, if true, prevents admission while another unit of the queue is Reserved
	// or has pods that are not ready. Requires podsReadyTimeout.
	// +optional
	BlockUntilPodsReady bool `json:"blockUntilPodsReady,omitempty"`
}

// WithinQueuePreemption is whether units are evicted for units of the same queue.
//
// +kubebuilder:validation:Enum=Never;LowerPriority
type WithinQueuePreemption string

const (
	// PreemptNever means that no unit is evicted.
	PreemptNever WithinQueuePreemption = "Never"
	// PreemptLowerPriority means that units with lower priority are evicted.
	PreemptLowerPriority WithinQueuePreemption = "LowerPriority"
)

// QueuePreemption controls the eviction of units for others.
type QueuePreemption struct {
	// withinQueue is whether a unit that does not fit can evict units with lower priority in the
	// queue. Defaults to Never.
	// +optional
	WithinQueue WithinQueuePreemption `json:"withinQueue,omitempty"`
	// minRunTime protects a unit from eviction for others for this long after its admission.
	// Defaults to 30s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="minRunTime must not be negative"
	// +optional
	MinRunTime *metav1.Duration `json:"minRunTime,omitempty"`
	// maxPerMinute is the maximum number of units evicted from the queue for others per minute. 0
	// means no limit.
	// +kubebuilder:validation:Minimum=0
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	MaxPerMinute int32 `json:"maxPerMinute,omitempty"`
}

// QueueStatus describes the units of a queue.
type QueueStatus struct {
	// policy is the policy in force.
	// +optional
	Policy QueuePolicy `json:"policy,omitempty"`
	// quota is the path of the quota group.
	// +optional
	Quota string `json:"quota,omitempty"`
	// pending is the number of units that wait for quota.
	// +kubebuilder:default=0
	// +optional
	Pending int32 `json:"pending"`
	// reserved is the number of units that hold quota and wait for admission checks.
	// +kubebuilder:default=0
	// +optional
	Reserved int32 `json:"reserved"`
	// dequeued is the number of units that hold quota and do not run yet.
	// +kubebuilder:default=0
	// +optional
	Dequeued int32 `json:"dequeued"`
	// running is the number of units that run.
	// +kubebuilder:default=0
	// +optional
	Running int32 `json:"running"`
	// headReason is why the front unit waits.
	// +optional
	HeadReason wellknown.Reason `json:"headReason,omitempty"`
	// highestPriority is the highest priority of the front unit and of the units that hold quota,
	// capped by maxPriority.
	// +optional
	HighestPriority *int32 `json:"highestPriority,omitempty"`
}
