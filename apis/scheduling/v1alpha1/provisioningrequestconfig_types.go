package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProvisioningRequestConfig is how an AdmissionCheck asks an autoscaler for nodes. The check has
// the controllerName "kube-queue.dev/provisioning-request" and names the config in its
// spec.parameters. One ProvisioningRequest is created for each time that a unit reserves quota.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.provisioningClassName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProvisioningRequestConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the ProvisioningRequests contain.
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

// ProvisioningRequestConfigSpec is what ProvisioningRequests contain. A change counts for the
// requests that are created after it.
type ProvisioningRequestConfigSpec struct {
	// provisioningClassName is the class of the requests, which selects the autoscaler and how it
	// provides nodes, such as "check-capacity.autoscaling.x-k8s.io".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +required
	ProvisioningClassName string `json:"provisioningClassName"`
	// parameters are passed to the class. An annotation provreq.kube-queue/NAME of a job replaces
	// the parameter NAME for that job.
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 253 && size(self[name]) <= 255)",message="the name of a parameter must be at most 253 characters long, and its value at most 255"
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
	// managedResources are the resources for which nodes are provided. Only the pod sets that
	// request one of them are part of a request, and a unit without such a pod set passes the
	// check at once. If unset, all pod sets are part of it.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) >= 1 && size(name) <= 317)",message="the name of a resource must be 1 to 317 characters long"
	// +optional
	ManagedResources []corev1.ResourceName `json:"managedResources,omitempty"`
	// retry is what follows a request that fails.
	// +optional
	Retry *ProvisioningRequestRetry `json:"retry,omitempty"`
	// maxPodSets is the largest number of different pod sets in a request. Equal pod sets are
	// merged and count once. A unit with more is rejected. If unset, it is 32, the limit of the
	// API of ProvisioningRequests. Some autoscalers accept 1 only.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +optional
	MaxPodSets *int32 `json:"maxPodSets,omitempty"`
}

// ProvisioningRequestRetry is what follows a request that fails. The unit gives its quota back and
// is queued again after 10 seconds, doubling to 15 minutes. This is the same for all checks and is
// no setting.
type ProvisioningRequestRetry struct {
	// limit is how many further requests a unit gets in a row if requests fail. When the last of
	// them has failed, the unit is rejected and is not tried until its spec changes. With 0, the
	// first request that fails rejects the unit. If unset, there is no limit.
	// +kubebuilder:validation:Minimum=0
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Limit *int32 `json:"limit,omitempty"`
}
