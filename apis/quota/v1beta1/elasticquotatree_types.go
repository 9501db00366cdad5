package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ElasticQuotaTree shares the resources of a cluster among namespaces with a tree of quotas. Only
// the oldest tree in namespace kube-system is used.
//
// +genclient
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

	// spec is the tree.
	// +required
	Spec ElasticQuotaTreeSpec `json:"spec"`
	// status reports whether the tree is in force and how much of it is used.
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
	// root is the ancestor of all other nodes.
	// +required
	Root ElasticQuotaNode `json:"root"`
}

// ElasticQuotaNode is a node of the tree. A node that lists namespaces is a quota group: the jobs
// of these namespaces are charged to it and to all its ancestors.
type ElasticQuotaNode struct {
	// name is unique in the tree.
	// +optional
	Name string `json:"name"`
	// namespaces are the namespaces whose jobs belong to this node. "*" means all namespaces
	// that no other node lists.
	// +nullable
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// min is the amount of each resource that is guaranteed to the node. Idle parts of it are
	// lent to other nodes.
	// +nullable
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`
	// max is the limit of the node. A resource that is not listed is unlimited; 0 means that
	// none of it may be used. The key kube-queue/max-jobs limits the number of jobs that hold
	// quota.
	// +nullable
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
	// attributes are further settings of the node. "kube-queue/reclaim" with the value "never" keeps the jobs
	// at and below the node from being evicted for the min of other nodes. Others have no effect.
	// +nullable
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
	// children are the nodes that share this node. The schema describes the upper levels of the
	// tree; the controller checks the levels below them.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=array
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	Children []ElasticQuotaNode `json:"children,omitempty"`
}

// TreeNamespace is the only namespace whose trees are used.
const TreeNamespace = "kube-system"

// ElasticQuotaTreeStatus reports whether the tree is in force and how much of it
// is used.
type ElasticQuotaTreeStatus struct {
	// conditions of the tree. Valid reports whether the tree is in force.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of spec that the condition Valid describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// nodes are the nodes of the tree in force, each before its children.
	// +listType=atomic
	// +optional
	Nodes []ElasticQuotaNodeStatus `json:"nodes,omitempty"`
}

// ElasticQuotaNodeStatus reports how much of one node is used.
type ElasticQuotaNodeStatus struct {
	// path is the path of the node from the root. Its parts are joined by "/".
	// +required
	Path string `json:"path"`
	// min is what the tree in force guarantees to the node: its min or, if that is more, the sum of what
	// its children are guaranteed. A tree with thousands of nodes shows neither min nor max here.
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`
	// max is the limit of the node in the tree in force, multiplied by the oversell rate of
	// kube-queue-controller. A resource that is not listed is unlimited.
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
	// used is the sum of what is charged at or below the node: to units that hold quota, to pods
	// that are left of jobs, and to pods that belong to no unit, if these are charged.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// unqueued is the part of used that pods use that belong to no unit.
	// +optional
	Unqueued corev1.ResourceList `json:"unqueued,omitempty"`
	// request is the sum of used and of the requests of the units that wait at or below the
	// node.
	// +optional
	Request corev1.ResourceList `json:"request,omitempty"`
	// borrowed is the part of used that is above what the node is guaranteed: its min or, if that is
	// more, the sum of what its children are guaranteed. The root borrows nothing.
	// +optional
	Borrowed corev1.ResourceList `json:"borrowed,omitempty"`
	// jobs is the number of units that hold quota at or below the node.
	// +optional
	Jobs int32 `json:"jobs"`
	// omittedResources is the number of resources that are used or requested at or below the node and
	// are not listed above. Resources that a min or max of the tree names are always listed. Of others,
	// at most 16 are listed for each node, and fewer if the status would become too large.
	// +optional
	OmittedResources int32 `json:"omittedResources,omitempty"`
}
