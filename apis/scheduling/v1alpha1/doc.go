// Package v1alpha1 contains the queue objects. A QueueUnit represents a job that waits for quota
// and then holds it. A Queue contains the waiting units of a quota group.
//
// This version changes only by additions.
//
// +k8s:deepcopy-gen=package
// +groupName=scheduling.x-k8s.io
// +kubebuilder:object:generate=true
package v1alpha1

// Columns of kubectl show fields that exist anyway. REQUESTS is spec.resource as JSON, because a shorter text would be
// a copy that somebody must keep true. An absent phase means Enqueued, and the schema has this default so that field
// selectors find new units.
