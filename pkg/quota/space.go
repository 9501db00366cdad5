package quota

import (
	"cmp"
	"math/bits"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Bound is one of the bounds on a resource at a node.
type Bound int8

const (
	// Max is the limit on all use at and below the node.
	Max Bound = iota
	// Min is the guarantee of the node. Use above it is borrowed.
	Min
	// OwnMin is the part of a node's guarantee that is not guaranteed to its children. Use above it by the node's own
	// group is borrowed from them.
	OwnMin
	// FixedMin is OwnMin as the limit for the non-preemptible units of the node's own group.
	FixedMin
	// FixedMax is the limit for non-preemptible units at and below the node, for resources that the guarantee of
	// their group does not name. What is guaranteed to the children of the node is not available to them.
	FixedMax
	// Lending bounds borrowing at and below the node: what is reserved is not available. Its room is
	// unlimited if nothing is reserved.
	Lending
	// Borrowers has as much room as there are branches at and below the node that use more than
	// their guarantee.
	Borrowers
	// Kept bounds use at and below the node by all but claimants: what is planned for claimants is not available to
	// others. Its room is unlimited if nothing is planned.
	Kept
	// Observed is Max of a ResourceQuota for pods that exist. Its status counts them already, so it does not bound them.
	Observed
	// Bounds is the number of bounds.
	Bounds
)

// Space is a bound on a resource at a node. Room is freed in spaces and is lacking in spaces.
type Space struct {
	Node     NodeID
	Resource resources.ID
	Bound    Bound
}

// Lack is missing room: Amount is what the Room of the space must reach.
type Lack struct {
	Space
	Amount int64
}

// Kinds of a Share.
const (
	// OfMin is a share of the guarantee of the node.
	OfMin = iota
	// OfMax is a share of the limit, for a node without a guarantee.
	OfMax
	// OfNothing is the share of a node that has neither for the requested resources.
	OfNothing
)

// Share is the dominant share of a node: the largest Used / Due among the requested resources, where Due is the
// guarantee or the limit. Competing nodes are served in the order of Compare. Resources that the unit does not request
// do not count: otherwise a group would starve while a sibling uses much of another resource.
type Share struct {
	Kind int8
	// Used and Due are in base units of one resource. Due is greater than zero unless Kind is
	// OfNothing.
	Used, Due int64
}

// Compare orders shares by kind (OfMin, OfMax, OfNothing) and then by size, the smaller first. It is
// exact.
func (s Share) Compare(other Share) int {
	if s.Kind != other.Kind {
		return cmp.Compare(s.Kind, other.Kind)
	}
	high, low := bits.Mul64(uint64(max(s.Used, 0)), uint64(other.Due))
	otherHigh, otherLow := bits.Mul64(uint64(max(other.Used, 0)), uint64(s.Due))
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}
