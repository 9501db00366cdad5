// Package v1alpha1 contains the questions that kube-queue-controller answers from the state that it decides by: why a
// unit waits, who is in a queue and in which order, and how a quota tree is used.
//
// A question is an object that is created with dryRun=All, like a SubjectAccessReview: the answer is in the status of
// the object that the API server returns, and nothing is ever stored. Without an answer the API server refuses the object.
// The caller needs the right to create the review in the namespace. Units of namespaces in which the caller may not
// list QueueUnits are counted, but not named.
//
// The version changes only by additions.
//
// +k8s:deepcopy-gen=package
// +groupName=visibility.kube-queue.dev
// +groupGoName=Visibility
// +kubebuilder:object:generate=true
package v1alpha1
