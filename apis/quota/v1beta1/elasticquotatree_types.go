package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ElasticQuotaTree divides the resources of a cluster among namespaces. Only the oldest tree in
// namespace kube-system is used.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=eqtree
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the group is in use by ElasticQuotaTree users outside Kubernetes"
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].message`,priority=1
type ElasticQuotaTree struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the tree.
	// +required
	Spec ElasticQuotaTreeSpec `json:"spec"`
	// status shows whether the tree is in force and how much of it is used. kube-queue-controller
	// writes it.
	// +optional
	Status ElasticQuotaTreeStatus `json:"status,omitempty"`
}

// ElasticQuotaTreeList is a list of ElasticQuotaTrees.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ElasticQuotaTreeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticQuotaTree `json:"items"`
}

// ElasticQuotaTreeSpec defines the tree.
type ElasticQuotaTreeSpec struct {
	// root is the root node.
	// +required
	Root ElasticQuotaNode `json:"root"`
}

// ElasticQuotaNode is a node of the tree. A node with namespaces is a quota group. Jobs in these
// namespaces are charged to it and to its ancestors.
type ElasticQuotaNode struct {
	// name must be unique in the tree.
	// +optional
	Name string `json:"name"`
	// namespaces lists the namespaces that belong to this node. "*" stands for all namespaces that
	// no other node lists.
	// +nullable
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// min is the guaranteed amount of each resource. Other nodes can borrow what is unused.
	// +nullable
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`
	// max is the limit for each resource. An omitted resource is unlimited. The key
	// kube-queue/max-jobs limits the number of units that hold quota.
	// +nullable
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
	// attributes holds other settings. "kube-queue/reclaim": "never" prevents reclaiming quota from
	// jobs at or below this node.
	// +nullable
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
	// children lists the child nodes.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=array
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	Children []ElasticQuotaNode `json:"children,omitempty"`
}

// TreeNamespace is the only namespace whose trees are used.
const TreeNamespace = "kube-system"

// ElasticQuotaTreeStatus shows whether the tree is in force and how much of it is used.
type ElasticQuotaTreeStatus struct {
	// conditions describes the tree. Valid is True if the current spec is in force. OverQuota is
	// True if a node has exceeded a limit for 10s.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that the condition Valid describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// nodes lists the nodes of the tree in force, parents first.
	// +listType=atomic
	// +optional
	Nodes []ElasticQuotaNodeStatus `json:"nodes,omitempty"`
}

// ElasticQuotaNodeStatus shows how much of a node is used.
type ElasticQuotaNodeStatus struct {
	// path is the path from the root.
	// +required
	Path string `json:"path"`
	// min is the guarantee in force: the min of the node or, if greater, the sum of the guarantees
	// of its children. Omitted in trees with thousands of nodes, like max.
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`
	// max is the limit in force: the max of the node multiplied by the oversell rate.
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
	// used is the amount charged at and below the node to units, to the remaining pods of ended or
	// deleted jobs and, if configured, to pods without a unit.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// unqueued is the part of used for pods without a unit.
	// +optional
	Unqueued corev1.ResourceList `json:"unqueued,omitempty"`
	// request is the used amount plus the requests of the units that wait there.
	// +optional
	Request corev1.ResourceList `json:"request,omitempty"`
	// borrowed is the part of used above the guarantee.
	// +optional
	Borrowed corev1.ResourceList `json:"borrowed,omitempty"`
	// jobs is the number of units that hold quota there.
	// +optional
	Jobs int32 `json:"jobs"`
	// omittedResources is the number of resources used or requested here but not listed. Resources
	// in a min or max of the tree are always listed, others up to 16 per node.
	// +optional
	OmittedResources int32 `json:"omittedResources,omitempty"`
}
