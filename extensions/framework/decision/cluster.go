package decision

import (
	"kube-queue.dev/kube-queue/extensions/framework/requests"
)

// Cluster is what of the cluster decides what a job's unit asks for.
type Cluster interface {
	PriorityClasses
	requests.Cluster
}

// PriorityClasses answers what a PriorityClass is worth.
type PriorityClasses interface {
	// Value of the class with the name.
	Value(name string) (value int32, found bool)
	// Default is the global default class; found is false when there is none.
	Default() (name string, value int32, found bool)
}
