package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Queue is the line in which the units of one quota group wait. Queues are made
// and kept by kube-queue-controller in its own namespace; what an administrator
// sets in spec is kept.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.status.policy`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Head",type=string,JSONPath=`.status.head`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Stop",type=string,JSONPath=`.spec.stop`,priority=1
// +kubebuilder:printcolumn:name="Head-Reason",type=string,JSONPath=`.status.headReason`,priority=1
// +kubebuilder:printcolumn:name="Quota",type=string,JSONPath=`.status.quota`,priority=1
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what an administrator sets.
	// +optional
	Spec QueueSpec `json:"spec,omitempty"`
	// status counts the units of the queue.
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

// QueuePolicy says in which order the units of a queue are tried.
//
// +kubebuilder:validation:Enum=RoundRobin;Block;Priority
type QueuePolicy string

const (
	// PolicyRoundRobin: units ask in turn; a refused one backs off and those
	// behind it go first meanwhile.
	PolicyRoundRobin QueuePolicy = "RoundRobin"
	// PolicyBlock: only the front unit is tried; nothing passes it.
	PolicyBlock QueuePolicy = "Block"
	// PolicyPriority: each time room is freed, trying starts again at the first
	// unit; later ones may pass one that does not fit.
	PolicyPriority QueuePolicy = "Priority"
)

// QueueStop says whether a queue is stopped.
//
// +kubebuilder:validation:Enum=None;Hold;Drain
type QueueStop string

const (
	// StopNone: units are released.
	StopNone QueueStop = "None"
	// StopHold: nothing more is released.
	StopHold QueueStop = "Hold"
	// StopDrain: nothing more is released, and what has been is evicted.
	StopDrain QueueStop = "Drain"
)

// QueueSpec is what an administrator sets.
type QueueSpec struct {
	// policy in which the units are tried; unset: the one that
	// kube-queue-controller was started with.
	// +optional
	Policy QueuePolicy `json:"policy,omitempty"`
	// priority among queues that share an ancestor, the greater first.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// maxPriority caps the priority of the queue's units: one that asks for more
	// stands where this would. Unset: nothing is capped.
	// +optional
	MaxPriority *int32 `json:"maxPriority,omitempty"`
	// stop says whether the queue is stopped: with Hold nothing more is released,
	// with Drain what has been released is evicted as well and waits again. None, or
	// unset: it is not.
	// +optional
	Stop QueueStop `json:"stop,omitempty"`
}

// QueueStatus counts the units of a queue.
type QueueStatus struct {
	// policy in force.
	// +optional
	Policy QueuePolicy `json:"policy,omitempty"`
	// quota is the path of the quota group, its parts joined by "/".
	// +optional
	Quota string `json:"quota,omitempty"`
	// pending units wait for quota.
	// +kubebuilder:default=0
	// +optional
	Pending int32 `json:"pending"`
	// reserved units hold quota and wait for their checks.
	// +kubebuilder:default=0
	// +optional
	Reserved int32 `json:"reserved"`
	// dequeued units hold quota and are not yet seen running.
	// +kubebuilder:default=0
	// +optional
	Dequeued int32 `json:"dequeued"`
	// running units hold quota and run.
	// +kubebuilder:default=0
	// +optional
	Running int32 `json:"running"`
	// head is the unit in front, as namespace/name.
	// +optional
	Head string `json:"head,omitempty"`
	// headReason is what the unit in front waits for.
	// +optional
	HeadReason wellknown.Reason `json:"headReason,omitempty"`
}
