// Package quota says what a quota backend is: something that places units into
// groups, reports whether a group has room, and is charged when a unit takes it.
//
// Words. A group is the set of jobs that share one quota; a node is a place
// where a limit stands; a group is charged at several nodes at once, its own
// and each one above. A demand is what one unit takes while it holds quota.
// A refusal says which check a demand failed, and what would have to be freed
// before it is worth asking again.
//
// Invariant: for every node and resource, used is the exact sum of the demands
// charged and not released. Charge and Release are inverses.
//
// Backends are not safe for concurrent use: the scheduler's goroutine owns them.
package quota

import (
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// JobsResource is the resource of which every demand takes one: limiting it
// limits the number of units that hold quota.
const JobsResource = wellknown.MaxJobsResource

// NodeID names a node of one backend. IDs are dense, from 0.
type NodeID int32

// Demand is what one unit takes while it holds quota.
type Demand struct {
	// Requests of all the unit's pods, and one of JobsResource.
	Requests resources.Vector
	// Preemptible units may use what a group borrows; others stay within min.
	Preemptible bool
}

// Equal reports whether two demands are of the same shape: where one is refused,
// the other would be.
func (d Demand) Equal(other Demand) bool {
	return d.Preemptible == other.Preemptible && d.Requests.Equal(other.Requests)
}

// Key tells shapes apart: demands have the same key exactly when they are Equal.
func (d Demand) Key() string {
	if d.Preemptible {
		return "p" + d.Requests.Key()
	}
	return "n" + d.Requests.Key()
}

// Group is the set of jobs that share one quota.
type Group interface {
	// Path names the group: the names of its nodes from the root, joined by "/".
	Path() string
	// Queue is the name of the Queue object in which the group's units wait.
	Queue() string
	// Nodes that the group is charged at, its own first, the root last.
	Nodes() []NodeID
	// Fits reports why the demand has no room now, or nil when it has.
	Fits(Demand) *Refusal
	// Owed reports whether the group, with the demand, would still be within what it
	// is guaranteed. A group without guarantee is owed nothing.
	Owed(Demand) bool
	// Charge takes the demand, whether it fits or not: what a restart finds
	// charged is charged. The owner, which may be empty, is the UID of the job whose
	// pods will use it.
	Charge(owner string, d Demand)
	// Release gives back a demand that was charged to the owner.
	Release(owner string, d Demand)
	// Spaces calls visit with each space in which the demand takes room, and gives
	// it back.
	Spaces(d Demand, visit func(Space))
}

// Backend holds the groups. What limits them all changes by a new backend, to which
// the scheduler charges again what is held; only a Observer changes while it decides.
type Backend interface {
	// Place finds the group of a unit in the namespace that may name a quota
	// (empty: none), or says why there is none.
	Place(namespace, quotaName string) (Group, *Refusal)
	// Groups are all groups that there are whether or not units are in them, in the
	// backend's order. Place may find others.
	Groups() []Group
	// Nearest is where a unit is charged that holds quota of the group with the path
	// and belongs to no group any more: the node of the path, or the nearest above
	// it that there still is. Only Nodes, Path, Charge and Release of it are of use;
	// equal paths give the same Group. Nil where such a unit counts nowhere.
	Nearest(path string) Group
	// Room is what a demand may still take in a space; MaxInt64 where nothing
	// limits it, negative where use is above the bound.
	Room(Space) int64
	// Share is how much of its due the node would have in use with the demand.
	Share(NodeID, Demand) Share
	// Usage of every node, in the backend's order.
	Usage() []NodeUsage
}

// Lender is a backend whose groups borrow what others are guaranteed and do not
// use, and that can pause this.
type Lender interface {
	Backend
	// Pauses reports whether borrowing is ever to be paused; the others are not called
	// where it is not.
	Pauses() bool
	// Pause forbids to borrow further of the resource below the node, until Resume
	// was called as often; Resume reports whether that is so now.
	Pause(NodeID, resources.ID)
	Resume(NodeID, resources.ID) bool
}

// UsageAggregator is a backend that distinguishes more than users have names for.
type UsageAggregator interface {
	Backend
	// AggregatedUsage is Usage of what users know by name alone.
	AggregatedUsage() []NodeUsage
}

// Observer is a backend that also goes by what happens in the cluster beside the units,
// each group on its own: what is used by others, and limits that change one by one.
type Observer interface {
	Backend
	// Observe takes in one thing that was seen, of a type of the backend's own.
	Observe(seen any) Effect
}

// Effect is what an observation has changed. That there is less room needs no mention.
type Effect struct {
	// Freed are spaces that may have more room than before.
	Freed []Space
	// Changed is the group whose limits are others now, which has come, or which is
	// not among the backend's Groups any more; nil when there is none.
	Changed Group
}

// NodeUsage reports how much of a node is used.
type NodeUsage struct {
	// Path names the node.
	Path string
	// Used is the sum of what is charged, JobsResource left out.
	Used resources.Vector
	// Borrowed is the part of Used that is above the node's guarantee, for the
	// resources that the guarantee names.
	Borrowed resources.Vector
	// Min is what the node is guaranteed and Max its limit, for the resources that they
	// name, JobsResource included.
	Min, Max resources.Vector
	// Jobs is the number of units charged.
	Jobs int64
}
