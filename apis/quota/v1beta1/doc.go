// Package v1beta1 contains ElasticQuotaTree, the tree of quotas with which the backend
// elasticquota shares a cluster. The group, names and fields are those that users of
// ElasticQuotaTree write today.
//
// +k8s:deepcopy-gen=package
// +groupName=scheduling.sigs.k8s.io
// +groupGoName=Quota
// +kubebuilder:object:generate=true
package v1beta1
