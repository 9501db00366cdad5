// Package quota defines the interface of a quota backend. A backend assigns units to quota groups, reports whether a
// group has room for a demand, and accounts for the units that hold quota.
//
// Terms. A quota group is the set of jobs that share one quota. A quota node is a point in the quota that has limits; a
// group is charged at several nodes, its own and all ancestors. A demand is what one unit is admitted with. A charge is
// the usage of a unit or of what is left of its job. A refusal reports which check a demand failed, and what must be
// freed before the demand is worth trying again.
//
// Invariant: for every node and resource, used is the exact sum of the totals of what was charged and not uncharged.
// Charge and Uncharge are inverses.
//
// Backends are not safe for concurrent use. The goroutine of the scheduler owns them.
package quota

import (
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// JobsResource is a resource that every demand requests 1 of, so that a limit on it limits the number of units that
// hold quota.
const JobsResource = wellknown.MaxJobsResource

// NodeID identifies a node of a backend. IDs are dense and start at 0.
type NodeID int32

// Branch is a competitor for the room of a node: everything at and below one of its children or, if Own is set, only
// what is charged to the node's own group.
type Branch struct {
	Node NodeID
	Own  bool
}

// Demand is what one unit is admitted with, and the minimum that it is charged while it holds quota.
type Demand struct {
	// Requests is the sum of the requests of all pods of the unit, and 1 of JobsResource.
	Requests resources.Vector
	// Preemptible units can borrow. Other units stay within the min of their group.
	Preemptible bool
	// PodsExist is whether the pods of the unit wait at a gate, so that the API server counts them already.
	PodsExist bool
}

// Equal reports whether two demands have the same shape. If a group refuses one of them, it also refuses the other.
func (d Demand) Equal(other Demand) bool {
	return d.Preemptible == other.Preemptible && d.PodsExist == other.PodsExist && d.Requests.Equal(other.Requests)
}

// Key identifies the shape: two demands have the same key exactly when they are Equal.
func (d Demand) Key() string {
	key := "n"
	if d.Preemptible {
		key = "p"
	}
	if d.PodsExist {
		key += "e"
	}
	return key + d.Requests.Key()
}

// Group is the set of jobs that share one quota.
type Group interface {
	// Path identifies the group: the names of its nodes from the root, joined by "/".
	Path() string
	// Queue is the name of the Queue object for the units of the group.
	Queue() string
	// Nodes are the nodes that the group is charged at, from its own to the root.
	Nodes() []NodeID
	// Fits returns why the demand does not fit now, or nil if it fits.
	Fits(Demand) *Refusal
	// Owed reports whether the group, which is in the branch, is owed the demand against the siblings
	// of the branch. A group without a guarantee is owed nothing, and neither is a demand that
	// requests nothing.
	Owed(Demand, Branch) bool
	// Charge adds the charge to what is used, even if it does not fit: units that hold quota must be charged again after a
	// restart, and pods are created without asking.
	Charge(*Charge)
	// Uncharge reverts a charge.
	Uncharge(*Charge)
	// Spaces calls visit with each space in which the charge uses room and, when uncharged, frees it.
	Spaces(c *Charge, visit func(Space))
}

// Verifier is a group that reports whether a cause of an earlier refusal is still true. Fits may report another cause
// first.
type Verifier interface {
	Group
	// StillRefuses reports whether the group would refuse the demand for this cause if it were the only one. It
	// assumes so for a cause without a node and a resource.
	StillRefuses(Demand, Cause) bool
}

// Backend holds the groups. To change their limits, the scheduler gets a new backend and charges the
// units that hold quota to it. Only an Observer changes in place.
type Backend interface {
	// Place returns the group of a unit in the namespace, or a refusal that explains why there is none. quotaName is
	// the quota that the unit selects; it can be empty.
	Place(namespace, quotaName string) (Group, *Refusal)
	// Groups returns the groups that exist even without units, in the order of the backend. Place can return others.
	Groups() []Group
	// Nearest returns where to charge a unit that holds quota of the group with the path but no longer belongs to any
	// group: the node of the path, or its nearest ancestor that still exists. Only Nodes, Path, Charge, Uncharge and
	// Spaces of the result are used, and Queue, which is empty. Equal paths return the same Group. The result is nil
	// if such a unit is not charged anywhere.
	Nearest(path string) Group
	// Unqueued returns the group that pods in the namespace are charged to if they belong to no unit; nil if they are
	// not charged anywhere.
	Unqueued(namespace string) Group
	// Room returns how much a demand can still use in a space: MaxInt64 if the space has no limit, negative if more
	// is used than the limit allows.
	Room(Space) int64
	// Share returns the share of the branch with the demand included.
	Share(Branch, Demand) Share
	// Usage returns the usage of every node, in the order of the backend. The index is the NodeID. The
	// path of an ID without a node is empty.
	Usage() []NodeUsage
}

// Lender is a backend whose groups borrow the unused guarantee of other groups. It can reserve room for units that
// are owed it.
type Lender interface {
	Backend
	// Reserves reports whether room can be reserved. If not, Reserve is not called.
	Reserves() bool
	// Reserve adds an amount in base units, which can be negative, to what is reserved of the resource at the node.
	// No group at or below the node can borrow what is reserved.
	Reserve(NodeID, resources.ID, int64)
}

// Planner is a backend that can make room for a unit by evicting others. It distinguishes what is used from what is
// planned: evicted units will free what they use, and the units that they are evicted for will be charged.
//
// Until then, other demands cannot use the room that is planned for them: a demand fits only if it fits both now and as
// planned.
type Planner interface {
	Backend
	// Plan plans to charge the charge to the group. PlanUncharge plans to uncharge it. Each is the inverse of the
	// other.
	Plan(Group, *Charge)
	PlanUncharge(Group, *Charge)
	// AsPlanned calls do. Meanwhile, Room, Share, and Fits and Owed of the groups act as if everything planned were
	// done.
	AsPlanned(do func())
	// Unreserved calls do. Meanwhile, Fits of the groups ignores what is reserved against borrowing.
	Unreserved(do func())
	// ResourceName returns the name of a resource. IDs depend on the order in which names were seen; the choice of
	// victims must not.
	ResourceName(resources.ID) string
	// Reclaims reports whether units of the group are evicted for units that are within the guarantee of
	// another group.
	Reclaims(from Group) bool
}

// JobLimiter is a backend that limits how many units hold quota below a node that is shared by several groups.
type JobLimiter interface {
	Backend
	// JobsID returns the ID of JobsResource.
	JobsID() resources.ID
	// Jobs returns the number of units of the branch that hold quota.
	Jobs(Branch) int64
}

// UsageAggregator is a backend that distinguishes more kinds of usage than users know by name.
type UsageAggregator interface {
	Backend
	// AggregatedUsage returns Usage summed by the names that users know.
	AggregatedUsage() []NodeUsage
}

// Observer is a backend that also depends on objects in the cluster other than units, separately for
// each group: the usage of others, and limits that change one at a time.
type Observer interface {
	Backend
	// Observe processes one observation. The backend defines the types of observations.
	Observe(seen any) Effect
}

// Forgetter is a backend that can forget what is no longer used. IDs of resources and nodes are reused only with such
// a backend.
type Forgetter interface {
	Backend
	// Uses adds to the set the resources that the backend stores anything about.
	Uses(*resources.IDs)
	// Forget forgets everything about resources that are not in the set. It can reuse the ID of a node if nothing is
	// charged to the node, no group in Groups has it, and isUsed returns false for it.
	Forget(used resources.IDs, isUsed func(NodeID) bool)
}

// Explainer is a backend that can be copied with everything that is charged to it, so that a goroutine other than the
// deciding one can answer questions about it.
type Explainer interface {
	Backend
	// Clone returns a copy with everything charged and planned. The names are a clone of those of the backend. The clone
	// can uncharge what was charged to the backend.
	Clone(names *resources.Names) Explainer
	// Lacks returns a refusal for every limit that leaves no room for the demand of the group now, from the node of the
	// group to the root. Unlike Fits, it lists all of them, except those that the demand alone exceeds.
	Lacks(Group, Demand) []*Refusal
	// Exceeds returns a refusal for every limit that the demand of the group alone exceeds. A demand that exceeds
	// none fits if nothing is charged or reserved.
	Exceeds(Group, Demand) []*Refusal
	// Holds returns how much the charge holds in the space of a refusal; 0 if none.
	Holds(r *Refusal, c Charged) int64
	// Of returns the group that the charge was charged to, so that it can be uncharged.
	Of(c Charged) Group
	// Raised returns a copy with higher limits and everything charged, but nothing reserved or planned. It fails if the
	// limits are not valid together.
	Raised(names *resources.Names, raises []Raise) (Explainer, error)
	// Written returns the amounts that an administrator writes before and after the raises, each amount once. It
	// includes what else must be raised so that the limits are valid together.
	Written(raises []Raise) ([]Written, error)
	// Known returns the amounts of a vector by the names that users know.
	Known(resources.Vector) resources.Vector
}

// Raise is a higher limit: the space, of bound Max, FixedMin or FixedMax, allows By more, in base units. FixedMin
// represents the guarantee of the node, and FixedMax its limit.
type Raise struct {
	Space
	By int64
}

// Written is how an administrator writes a Raise.
type Written struct {
	// Quota is the path of the node, and Field the field with the limit, such as max.
	Quota, Field, Resource string
	// From and To are in base units of the resource.
	From, To int64
}

// Charged is a charge, and the path of the group that it is charged to.
type Charged struct {
	Path string
	// Remains is whether the group was returned by Nearest. Place can return a group with the same path.
	Remains bool
	Charge  *Charge
}

// Effect is what an observation has changed. It need not report lost room.
type Effect struct {
	// Freed are the spaces that may have more room than before.
	Freed []Space
	// Changed is the group that is new, has changed limits, or is no longer among the Groups of the backend; nil if
	// there is none.
	Changed Group
}

// NodeUsage reports how much of a node is used.
type NodeUsage struct {
	// Path identifies the node.
	Path string
	// Used is the sum of what is charged, without JobsResource. Unqueued is the part used by pods that belong to no unit.
	Used, Unqueued resources.Vector
	// Borrowed is the part of Used above the guarantee of the node, for the resources in the guarantee. The root
	// borrows nothing.
	Borrowed resources.Vector
	// Min is the guarantee of the node and Max its limit, for the resources in them, including JobsResource.
	Min, Max resources.Vector
	// Jobs is the number of units charged.
	Jobs int64
}
