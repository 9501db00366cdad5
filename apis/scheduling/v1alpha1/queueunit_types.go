package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// QueueUnit is one unit of work that waits for quota and then holds it: all of
// a job, whatever its framework.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=qu
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.status.queue`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.consumerRef.kind`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Quota",type=string,JSONPath=`.status.quota`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type QueueUnit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for.
	// +required
	Spec QueueUnitSpec `json:"spec"`
	// status is how far it got.
	// +optional
	Status QueueUnitStatus `json:"status,omitempty"`
}

// QueueUnitList is a list of QueueUnits.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type QueueUnitList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QueueUnit `json:"items"`
}

// QueueUnitSpec is what a unit asks for.
type QueueUnitSpec struct {
	// consumerRef is the job that the unit stands for.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a unit stands for one job all its life: delete it and create another"
	// +required
	ConsumerRef ConsumerReference `json:"consumerRef"`

	// priority orders the units of one queue, the greater first.
	// +kubebuilder:default=0
	// +optional
	Priority int32 `json:"priority"`

	// priorityClassName is the PriorityClass that the priority came from, if any.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// submissionTime, in microseconds, orders units of one priority, the earlier
	// first. Unset, the time of the unit's creation counts.
	// +optional
	SubmissionTime *metav1.MicroTime `json:"submissionTime,omitempty"`

	// podSets are the groups of equal pods that the job is made of.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	PodSets []PodSet `json:"podSets,omitempty"`

	// resource is what all pods together request. A resource that is not named
	// is not asked for.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Resource corev1.ResourceList `json:"resource,omitempty"`

	// active, when false, holds the unit back, or has it give its quota back
	// when it has been released.
	// +kubebuilder:default=true
	// +optional
	Active *bool `json:"active,omitempty"`

	// preemptible, when false, keeps the unit within the guaranteed part of its
	// quota, from where it is never evicted.
	// +kubebuilder:default=true
	// +optional
	Preemptible *bool `json:"preemptible,omitempty"`

	// quotaName picks among the quota groups that list the unit's namespace.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	QuotaName string `json:"quotaName,omitempty"`

	// maximumExecutionTimeSeconds is how long the job may run after its release,
	// in seconds; a longer one is evicted and deactivated.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`
}

// ConsumerReference names the job that a unit stands for.
type ConsumerReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=253
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// PodSet is a group of equal pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minCount) || self.minCount <= self.count",message="minCount must not be above count"
type PodSet struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// count is the number of pods.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count int32 `json:"count"`
	// minCount is the smallest number of pods that is of use; unset: all of them.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinCount *int32 `json:"minCount,omitempty"`
	// requests of one pod.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits of one pod.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// priorityClassName is the PriorityClass of the pods: the one that they name, or
	// else the cluster's default. Absent: they have none, or it is not known.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// quotaScopes are those scopes of a ResourceQuota that the pods match. Pods that
	// do not match BestEffort or Terminating match NotBestEffort or NotTerminating.
	// Absent: none of them, or nothing is known of the pods.
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=BestEffort;Terminating;CrossNamespacePodAffinity
	// +optional
	QuotaScopes []corev1.ResourceQuotaScope `json:"quotaScopes,omitempty"`
	// unset names the containers that say nothing of a resource, parted by commas, for
	// each of requests.cpu, requests.memory, limits.cpu and limits.memory of which
	// there are such containers. A ResourceQuota that limits such a resource refuses
	// the pods. Absent: no container does so, or nothing is known of the pods.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(self[name]) <= 256)",message="the names of containers must not be longer than 256 characters"
	// +optional
	Unset map[corev1.ResourceName]string `json:"unset,omitempty"`
}

// QueueUnitStatus is how far a unit got.
type QueueUnitStatus struct {
	// phase is the step that the unit is at; absent reads as Enqueued.
	// +optional
	Phase QueueUnitPhase `json:"phase,omitempty"`
	// reason is one word for what the unit waits for.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Reason wellknown.Reason `json:"reason,omitempty"`
	// message is a sentence for what the unit waits for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// quota is the path of the quota group, its parts joined by "/".
	// +optional
	Quota string `json:"quota,omitempty"`
	// queue is the name of the Queue that the unit waits in or was released from.
	// +optional
	Queue string `json:"queue,omitempty"`
	// attempts counts the unit's releases.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// dequeueTime is when the unit was last released.
	// +optional
	DequeueTime *metav1.MicroTime `json:"dequeueTime,omitempty"`
	// requeueState reports when a unit in phase Backoff stands in line again.
	// +optional
	RequeueState *RequeueState `json:"requeueState,omitempty"`
	// admissionChecks are the states of the checks that stand between quota and
	// release.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	AdmissionChecks []AdmissionCheckState `json:"admissionChecks,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RequeueState reports when a unit stands in line again.
type RequeueState struct {
	// count of the requeues so far.
	// +optional
	Count int32 `json:"count,omitempty"`
	// requeueAt is when the unit stands in line again.
	// +optional
	RequeueAt *metav1.MicroTime `json:"requeueAt,omitempty"`
}

// AdmissionCheckState is the state of one admission check of a unit.
type AdmissionCheckState struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +required
	Name string `json:"name"`
	// +kubebuilder:validation:Enum=Pending;Ready;Retry;Rejected
	// +required
	State string `json:"state"`
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}
