// Package v1alpha1 contains reviews: questions that kube-queue-controller answers from its state.
//
// Create a review with dryRun=All, like a SubjectAccessReview. The answer is in the status of the
// returned object; nothing is stored. If nothing answers, the API server refuses the object. The
// caller must be allowed to create the review in the namespace. Units in namespaces where the
// caller cannot list QueueUnits are counted but not named.
//
// This version changes only by additions.
//
// +k8s:deepcopy-gen=package
// +groupName=visibility.kube-queue.dev
// +kubebuilder:object:generate=true
package v1alpha1
