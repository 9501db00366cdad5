// Package v1alpha1 contains the objects of the queue itself: QueueUnit, one unit of work that
// waits for quota and then holds it, and Queue, which holds the waiting units of one quota
// group.
//
// The version changes only by additions.
//
// +k8s:deepcopy-gen=package
// +groupName=scheduling.x-k8s.io
// +groupGoName=Scheduling
// +kubebuilder:object:generate=true
package v1alpha1

// Columns of kubectl show fields that exist anyway. REQUESTS is spec.resource as JSON, because a shorter text would be
// a copy that somebody must keep true. An absent phase means Enqueued, and the schema has this default so that field
// selectors find new units.
