package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ElasticQuotaTree shares a cluster's resources among namespaces by a tree of
// quotas. The oldest tree in namespace kube-system counts.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=eqtree
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the group is in use by ElasticQuotaTree users outside Kubernetes"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`,priority=1
type ElasticQuotaTree struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the tree.
	// +required
	Spec ElasticQuotaTreeSpec `json:"spec"`
	// status reports whether the tree is in force, and how much of it is used.
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

// ElasticQuotaTreeSpec is the tree.
type ElasticQuotaTreeSpec struct {
	// root is the node that all others stand under.
	// +required
	Root ElasticQuotaNode `json:"root"`
}

// ElasticQuotaNode is a node of the tree. One that lists namespaces is a quota
// group: the jobs of these namespaces are charged to it and to every node above.
type ElasticQuotaNode struct {
	// name is unique in the tree.
	// +optional
	Name string `json:"name"`
	// namespaces whose jobs belong to this node; "*" stands for all that no
	// other node lists.
	// +nullable
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// min is guaranteed to the node; while idle it is lent to others.
	// +nullable
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`
	// max is never exceeded. A resource that is not named is unlimited; 0 means
	// none. The key kube-queue/max-jobs limits the number of released jobs.
	// +nullable
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
	// attributes are further settings of the node, as "kube-queue/reclaim".
	// +nullable
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
	// children are the nodes that share this one. The schema describes the upper
	// levels of the tree; what is below them is checked by the controller.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=array
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	Children []ElasticQuotaNode `json:"children,omitempty"`
}

// TreeNamespace is the only namespace whose trees count.
const TreeNamespace = "kube-system"

// ElasticQuotaTreeStatus reports whether the tree is in force and how much of it
// is used.
type ElasticQuotaTreeStatus struct {
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of spec that the condition Valid
	// speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// nodes of the tree in force, in tree order.
	// +listType=atomic
	// +optional
	Nodes []ElasticQuotaNodeStatus `json:"nodes,omitempty"`
}

// ElasticQuotaNodeStatus reports how much of one node is used.
type ElasticQuotaNodeStatus struct {
	// path from the root, its parts joined by "/".
	// +required
	Path string `json:"path"`
	// used is what the units that hold quota under the node have been charged.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// request is used, and what waiting units under the node ask for beside it.
	// +optional
	Request corev1.ResourceList `json:"request,omitempty"`
	// borrowed is the part of used that is above min.
	// +optional
	Borrowed corev1.ResourceList `json:"borrowed,omitempty"`
	// jobs is the number of units that hold quota under the node.
	// +optional
	Jobs int32 `json:"jobs"`
}
