package decision

import (
	"kube-queue.dev/kube-queue/pkg/requests"
)

// Cluster provides the objects of the cluster that determine the requests and the
// priority of a unit.
type Cluster interface {
	PriorityClasses
	requests.Cluster
}

// PriorityClasses looks up PriorityClasses.
type PriorityClasses interface {
	// Value returns the value of the class with the name.
	Value(name string) (value int32, found bool)
	// Default returns the global default class; found is false if there is none.
	Default() (name string, value int32, found bool)
}
