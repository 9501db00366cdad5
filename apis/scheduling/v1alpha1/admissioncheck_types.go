package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AdmissionCheck is a requirement that a unit must meet, in addition to quota, before its job is
// released. Until all checks of its Queue are Ready, the unit holds its quota in phase Reserved.
// The check's controller writes its decision to status.admissionChecks of the unit.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Controller",type=string,JSONPath=`.spec.controllerName`
// +kubebuilder:printcolumn:name="Timeout",type=string,JSONPath=`.spec.timeout`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Parameters",type=string,JSONPath=`.spec.parameters.name`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of an AdmissionCheck must be at most 63 characters long"
type AdmissionCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the check's controller and its parameters.
	// +required
	Spec AdmissionCheckSpec `json:"spec"`
}

// AdmissionCheckList is a list of AdmissionChecks.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type AdmissionCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AdmissionCheck `json:"items"`
}

// AdmissionCheckSpec names the controller of a check and its parameters.
type AdmissionCheckSpec struct {
	// controllerName names the controller that decides the check, such as
	// "kube-queue.dev/provisioning-request". Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="controllerName is immutable; create another AdmissionCheck"
	// +required
	ControllerName string `json:"controllerName"`
	// parameters refers to an object with settings for the check.
	// +optional
	Parameters *AdmissionCheckParameters `json:"parameters,omitempty"`
	// timeout is how long a check can stay Pending before it counts as Retry. Unlimited if unset.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="timeout must be at least 1s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// AdmissionCheckParameters refers to an object with settings for a check.
type AdmissionCheckParameters struct {
	// apiGroup is the API group of the object.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// kind is the kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// CheckState is the decision of a check about a unit.
//
// +kubebuilder:validation:Enum=Pending;Ready;Retry;Rejected
type CheckState string

const (
	// CheckPending means that the check is not decided yet.
	CheckPending CheckState = "Pending"
	// CheckReady means that the job can be released.
	CheckReady CheckState = "Ready"
	// CheckRetry means that the unit gives its quota back, waits, and reserves quota again later.
	CheckRetry CheckState = "Retry"
	// CheckRejected means that the unit gives its quota back and waits until its spec changes.
	CheckRejected CheckState = "Rejected"
)

// AdmissionCheckState is the state of a check for a unit. kube-queue-controller sets it to Pending.
// The check's controller sets the other states.
type AdmissionCheckState struct {
	// name is the name of the AdmissionCheck.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +required
	Name string `json:"name"`
	// state is the decision of the check.
	// +required
	State CheckState `json:"state"`
	// lastTransitionTime is when the state last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`
	// message explains the state.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// podSetUpdates lists what the release adds to the pods of the job.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	PodSetUpdates []PodSetUpdate `json:"podSetUpdates,omitempty"`
}

// PodSetUpdate is what the release of a job adds to the pods of a pod set.
type PodSetUpdate struct {
	// name is the name of the pod set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// annotations are added to the pods.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
