// Package v1beta1 contains ElasticQuotaTree, the quota tree of the elasticquota backend. The group,
// names and fields are those that users of ElasticQuotaTree already have.
//
// +k8s:deepcopy-gen=package
// +groupName=scheduling.sigs.k8s.io
// +kubebuilder:object:generate=true
package v1beta1
