package quota

import (
	"fmt"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Exceedable is a backend whose limits only the queue enforces, so pods can exceed them.
type Exceedable interface {
	Backend
	// Excess describes a space of bound Max whose usage is above its limit. It returns false for any other space.
	Excess(Space) (Excess, bool)
}

// Excess is an exceeded limit of a node.
type Excess struct {
	// Node is the path of the node.
	Node, Resource string
	// Used and Limit are in base units. Unqueued is the part of Used that pods without a unit use.
	Used, Limit, Unqueued int64
}

// Message describes the excess.
func (e Excess) Message() string {
	format := func(v int64) string { return resources.Format(e.Resource, v) }
	unqueued := ""
	if e.Unqueued > 0 {
		unqueued = fmt.Sprintf(" (%s by pods outside of the queue)", format(e.Unqueued))
	}
	return fmt.Sprintf("quota %s is above its limit: %s is used %s of max %s%s", e.Node, e.Resource, format(e.Used), format(e.Limit), unqueued)
}

// UnitMessage describes the excess for a unit whose pods request more than was admitted. Both amounts are in base
// units.
func (e Excess) UnitMessage(requested, admitted int64) string {
	return fmt.Sprintf("the pods of the job request %s %s, but %s was admitted; %s",
		resources.Format(e.Resource, requested), e.Resource, resources.Format(e.Resource, admitted), e.Message())
}
