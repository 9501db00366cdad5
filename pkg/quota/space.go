package quota

import (
	"cmp"
	"math/bits"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Bound is one of the bounds that a node sets to the use of a resource.
type Bound int8

const (
	// Max bounds all use at and below the node.
	Max Bound = iota
	// Min is what the node's group is guaranteed; what it uses beyond is borrowed.
	Min
	// FixedMin is the guarantee as the bound of non-preemptible use.
	FixedMin
	// Lending bounds what is borrowed further below the node: there is no room for
	// that while it is paused, and any amount when it is not.
	Lending
)

// Space is a bound of a resource at a node: where room is freed, and where it lacks.
type Space struct {
	Node     NodeID
	Resource resources.ID
	Bound    Bound
}

// Lack is room that is missing: Amount that the Room of the space has to reach.
type Lack struct {
	Space
	Amount int64
}

// Kind of a Share.
const (
	// OfMin: part of what the node is guaranteed.
	OfMin = iota
	// OfMax: part of its limit, for a node without guarantee.
	OfMax
	// OfNothing: nothing is due to the node by which its use could be measured.
	OfNothing
)

// Share is how much of what is due to a node is in use: Used / Due of the resource
// of which that is the most. Nodes that compete are served in order of Compare.
type Share struct {
	Kind int8
	// Used and Due in base units of one resource; Due is above zero unless Kind is
	// OfNothing.
	Used, Due int64
}

// Compare orders shares: of min before of max before none, then the smaller first.
// It is exact.
func (s Share) Compare(other Share) int {
	if s.Kind != other.Kind {
		return cmp.Compare(s.Kind, other.Kind)
	}
	high, low := bits.Mul64(uint64(max(s.Used, 0)), uint64(other.Due))
	otherHigh, otherLow := bits.Mul64(uint64(max(other.Used, 0)), uint64(s.Due))
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}
