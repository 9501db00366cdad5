package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// QueueUnit represents a job in the queue. It waits for quota and then holds it.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=qu
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.status.queue`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.consumerRef.kind`
// +kubebuilder:printcolumn:name="Requests",type=string,JSONPath=`.spec.resource`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Quota",type=string,JSONPath=`.status.quota`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:selectablefield:JSONPath=`.status.queue`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.spec.consumerRef.name`
type QueueUnit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines what the job requests.
	// +required
	Spec QueueUnitSpec `json:"spec"`
	// status is the observed state of the unit.
	// +kubebuilder:default={}
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

// QueueUnitSpec defines what a job requests.
type QueueUnitSpec struct {
	// consumerRef refers to the job. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="consumerRef is immutable; delete the unit and create another one"
	// +required
	ConsumerRef ConsumerReference `json:"consumerRef"`

	// priority orders the units of a queue. The highest goes first.
	// +kubebuilder:default=0
	// +optional
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	Priority int32 `json:"priority"`

	// priorityClassName is the PriorityClass that the priority comes from.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// submissionTime orders units of equal priority. The earliest goes first. Defaults to the
	// creation time of the unit, which is also the earliest time for a unit created by hand.
	// +optional
	SubmissionTime *metav1.MicroTime `json:"submissionTime,omitempty"`

	// podSets lists the groups of equal pods of the job.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	PodSets []PodSet `json:"podSets,omitempty"`

	// resource is the sum of the requests of all pods and of the ResourceClaims that they use by
	// name. All fields together can name up to 64 resources.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 317)",message="the name of a resource must be at most 317 characters long"
	// +optional
	Resource corev1.ResourceList `json:"resource,omitempty"`

	// active, if false, prevents admission and evicts an admitted unit.
	// +kubebuilder:default=true
	// +optional
	Active *bool `json:"active,omitempty"`

	// preemptible, if false, restricts the unit to the guarantee of its quota and protects it from
	// preemption.
	// +kubebuilder:default=true
	// +optional
	Preemptible *bool `json:"preemptible,omitempty"`

	// unstoppable explains why suspending the job does not stop it. If set, the unit is not evicted
	// for others.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Unstoppable string `json:"unstoppable,omitempty"`

	// quotaName selects one of the quota groups that list the namespace.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	QuotaName string `json:"quotaName,omitempty"`

	// maximumExecutionTimeSeconds is how long the job can run after its release. A job that runs
	// longer is evicted and deactivated.
	// +kubebuilder:validation:Minimum=1
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`

	// growth, if true, means that the unit is for pods that the job has added since its admission.
	// It does not count as a job.
	// +optional
	Growth bool `json:"growth,omitempty"`

	// expectedRunTimeSeconds is how long the owner expects the job to run. It enforces nothing.
	// +kubebuilder:validation:Minimum=1
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	ExpectedRunTimeSeconds *int32 `json:"expectedRunTimeSeconds,omitempty"`
}

// ConsumerReference refers to a job.
type ConsumerReference struct {
	// apiVersion is the API group and version of the job.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion"`
	// kind is the kind of the job.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// namespace is the namespace of the job.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the job.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// uid is the UID of the job.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=253
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// PodSet is a group of equal pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minCount) || self.minCount <= self.count",message="minCount must not be greater than count; lower minCount or raise count"
type PodSet struct {
	// name identifies the pod set in the unit.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// count is the number of pods.
	// +kubebuilder:validation:Minimum=0
	// +required
	// +kubebuilder:validation:Maximum=2147483647
	Count int32 `json:"count"`
	// minCount is the minimum number of pods that the job can start with. Defaults to count. Only
	// one pod set can have a minCount below its count.
	// +kubebuilder:validation:Minimum=1
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	MinCount *int32 `json:"minCount,omitempty"`
	// requests are the resource requests of one pod.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 317)",message="the name of a resource must be at most 317 characters long"
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits are the resource limits of one pod.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 317)",message="the name of a resource must be at most 317 characters long"
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// priorityClassName is the PriorityClass that the pods name, or the cluster's default.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// quotaScopes lists the ResourceQuota scopes that the pods match. If BestEffort or Terminating
	// is not listed, the pods match the opposite scope, unless nothing is known about them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=BestEffort;Terminating;CrossNamespacePodAffinity
	// +optional
	QuotaScopes []corev1.ResourceQuotaScope `json:"quotaScopes,omitempty"`
	// unset lists the containers, separated by commas, that do not set requests.cpu,
	// requests.memory, limits.cpu or limits.memory. If a ResourceQuota limits such a resource, the
	// API server rejects the pods.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(self[name]) <= 256)",message="each list of container names must be at most 256 characters long"
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 317)",message="the name of a resource must be at most 317 characters long"
	// +optional
	Unset map[corev1.ResourceName]string `json:"unset,omitempty"`
}

// QueueUnitStatus is the observed state of a unit.
type QueueUnitStatus struct {
	// phase is the phase of the unit.
	// +kubebuilder:default=Enqueued
	// +optional
	Phase QueueUnitPhase `json:"phase,omitempty"`
	// reason is why the unit waits.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Reason wellknown.Reason `json:"reason,omitempty"`
	// message explains the reason.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// quota is the path of the quota group.
	// +optional
	Quota string `json:"quota,omitempty"`
	// queue is the Queue that the unit waits in or was admitted from.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Queue string `json:"queue,omitempty"`
	// attempts is how many times the unit was admitted.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// reservations is how many times the unit reserved quota for its admission checks.
	// +optional
	Reservations int32 `json:"reservations,omitempty"`
	// dequeueTime is when the unit was last admitted.
	// +optional
	DequeueTime *metav1.MicroTime `json:"dequeueTime,omitempty"`
	// startTime is when the job last began to run.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`
	// renewTime is when the owner last renewed a unit created by hand. If such a unit is not
	// renewed, it loses its quota.
	// +optional
	RenewTime *metav1.MicroTime `json:"renewTime,omitempty"`
	// admittedPodSets lists the pod sets admitted with fewer pods than spec.podSets requests.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	AdmittedPodSets []AdmittedPodSet `json:"admittedPodSets,omitempty"`
	// growth is what happens to pods that the job adds: the setting of its queue at its admission.
	// Defaults to Count.
	// +optional
	Growth QueueGrowth `json:"growth,omitempty"`
	// evictedFor is the UID of the unit that this unit is being evicted for.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=253
	// +optional
	EvictedFor types.UID `json:"evictedFor,omitempty"`
	// requeueState is when a unit that gave its quota back is queued again.
	// +optional
	RequeueState *RequeueState `json:"requeueState,omitempty"`
	// admissionChecks are the states of the checks that must be Ready before the job is released.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	AdmissionChecks []AdmissionCheckState `json:"admissionChecks,omitempty"`
	// conditions are the conditions of the unit.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AdmittedPodSet is a pod set admitted with fewer pods than spec.podSets requests.
type AdmittedPodSet struct {
	// name is the name of the pod set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// count is the number of admitted pods.
	// +kubebuilder:validation:Minimum=1
	// +required
	// +kubebuilder:validation:Maximum=2147483647
	Count int32 `json:"count"`
}

// RequeueState is when a unit is queued again.
type RequeueState struct {
	// count is how many times the unit recently gave its quota back.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Count int32 `json:"count,omitempty"`
	// requeueAt is when the unit is queued again.
	// +optional
	RequeueAt *metav1.MicroTime `json:"requeueAt,omitempty"`
}
