package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProvisioningRequestConfig defines how an AdmissionCheck requests nodes from an autoscaler. The
// check has controllerName "kube-queue.dev/provisioning-request" and refers to the config in
// spec.parameters.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.provisioningClassName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProvisioningRequestConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the ProvisioningRequests.
	// +required
	Spec ProvisioningRequestConfigSpec `json:"spec"`
}

// ProvisioningRequestConfigList is a list of ProvisioningRequestConfigs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ProvisioningRequestConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProvisioningRequestConfig `json:"items"`
}

// ProvisioningRequestConfigSpec defines the ProvisioningRequests. Changes apply to requests created
// later.
type ProvisioningRequestConfigSpec struct {
	// provisioningClassName selects the autoscaler and how it provides nodes, such as
	// "check-capacity.autoscaling.x-k8s.io".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +required
	ProvisioningClassName string `json:"provisioningClassName"`
	// parameters are passed to the class. The annotation provreq.kube-queue/NAME of a job
	// overrides parameter NAME.
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 253 && size(self[name]) <= 255)",message="the name of a parameter must be at most 253 characters long, and its value at most 255"
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
	// managedResources limits requests to pod sets that request one of these resources. A unit
	// without such a pod set passes the check. If unset, all pod sets are included.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) >= 1 && size(name) <= 317)",message="the name of a resource must be 1 to 317 characters long"
	// +optional
	ManagedResources []corev1.ResourceName `json:"managedResources,omitempty"`
	// retry defines what happens after a request fails.
	// +optional
	Retry *ProvisioningRequestRetry `json:"retry,omitempty"`
	// maxPodSets is the maximum number of pod sets in a request. Equal pod sets count once. Units
	// with more pod sets are rejected. Defaults to 32. Some autoscalers accept only 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +optional
	MaxPodSets *int32 `json:"maxPodSets,omitempty"`
}

// ProvisioningRequestRetry defines what happens after a request fails. The unit gives its quota
// back and is queued again after 10 seconds. The delay doubles with each failure, up to 15 minutes.
type ProvisioningRequestRetry struct {
	// limit is the maximum number of retries in a row. When the last one fails, the unit is
	// rejected. If unset, retries are unlimited.
	// +kubebuilder:validation:Minimum=0
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Limit *int32 `json:"limit,omitempty"`
}
