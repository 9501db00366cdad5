// Package v1alpha1 holds the objects of the queue itself: QueueUnit, one unit
// of work that waits for and then holds quota, and Queue, the line in which the
// units of one quota group wait.
//
// The version grows by additions only.
//
// +k8s:deepcopy-gen=package
// +groupName=scheduling.x-k8s.io
// +groupGoName=Scheduling
// +kubebuilder:object:generate=true
package v1alpha1
