package tree

import (
	"math"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// node is a node of a valid tree.
type node struct {
	path, name string
	// guaranteed and limited are the min and the limit of the cells.
	guaranteed, limited resources.Vector
	// cells are indexed by resource ID. Cells beyond its length are empty.
	cells []cell
}

// cell is the state of one resource at a node.
type cell struct {
	used resources.Sum
	// fixed is the part of used that non-preemptible units of the own group of the node use, and
	// unqueued the part that pods use that belong to no unit.
	fixed, unqueued resources.Sum
	limit           bound
	min             bound
	// paused is the number of claims for which borrowing below the node is paused.
	paused int
}

// bound is an amount that is limited only if it is named.
type bound struct {
	named bool
	value int64
}

// at returns the cell of the resource. It creates the cell if necessary.
func (n *node) at(r resources.ID) *cell {
	for int(r) >= len(n.cells) {
		n.cells = append(n.cells, cell{})
	}
	return &n.cells[r]
}

// has reports whether the node has a cell of the resource.
func (n *node) has(r resources.ID) bool {
	return r >= 0 && int(r) < len(n.cells)
}

// limit returns the limit of the resource, and whether it has one.
func (n *node) limit(r resources.ID) (int64, bool) {
	if !n.has(r) {
		return 0, false
	}
	return n.cells[r].limit.value, n.cells[r].limit.named
}

// min returns the guarantee of the resource, and whether it has one.
func (n *node) min(r resources.ID) (int64, bool) {
	if !n.has(r) {
		return 0, false
	}
	return n.cells[r].min.value, n.cells[r].min.named
}

// used returns how much of the resource is used at and below the node.
func (n *node) used(r resources.ID) resources.Sum {
	if !n.has(r) {
		return resources.Sum{}
	}
	return n.cells[r].used
}

// fixed returns how much of the resource non-preemptible units of the own group of the node use.
func (n *node) fixed(r resources.ID) resources.Sum {
	if !n.has(r) {
		return resources.Sum{}
	}
	return n.cells[r].fixed
}

// unqueued returns how much of the resource pods use that belong to no unit.
func (n *node) unqueued(r resources.ID) resources.Sum {
	if !n.has(r) {
		return resources.Sum{}
	}
	return n.cells[r].unqueued
}

// room returns how much of the resource is left below a bound.
func (n *node) room(r resources.ID, b quota.Bound) int64 {
	if !n.has(r) {
		return math.MaxInt64
	}
	c := &n.cells[r]
	switch {
	case b == quota.Max && c.limit.named:
		return c.used.Below(c.limit.value)
	case b == quota.Min && c.min.named:
		return c.used.Below(c.min.value)
	case b == quota.FixedMin && c.min.named:
		return c.fixed.Below(c.min.value)
	case b == quota.Lending && c.paused > 0:
		return 0
	default:
		return math.MaxInt64
	}
}

// charge adds the vector to what the node uses. fixed reports whether a non-preemptible unit of the own
// group of the node uses it, and unqueued whether pods do that belong to no unit.
func (n *node) charge(v resources.Vector, fixed, unqueued bool) {
	for _, a := range v {
		cell := n.at(a.ID)
		cell.used = cell.used.Plus(a.Value)
		if fixed {
			cell.fixed = cell.fixed.Plus(a.Value)
		}
		if unqueued {
			cell.unqueued = cell.unqueued.Plus(a.Value)
		}
	}
}

func (n *node) release(v resources.Vector, fixed, unqueued bool) {
	for _, a := range v {
		cell := n.at(a.ID)
		cell.used = cell.used.Minus(a.Value)
		if fixed {
			cell.fixed = cell.fixed.Minus(a.Value)
		}
		if unqueued {
			cell.unqueued = cell.unqueued.Minus(a.Value)
		}
	}
}

// share returns the share that the node would have with the demand: the dominant share among the
// requested resources. Other resources do not count, because a node would otherwise be passed over for
// its use of resources that the demand does not request, and one group below it could starve
// another.
func (n *node) share(d quota.Demand) quota.Share {
	greatest := quota.Share{Kind: quota.OfNothing}
	for _, a := range d.Requests {
		if a.Value <= 0 || !n.has(a.ID) {
			continue
		}
		share := quota.Share{Kind: quota.OfMin, Used: n.used(a.ID).Plus(a.Value).Clamp(), Due: n.cells[a.ID].min.value}
		if share.Due == 0 {
			share.Kind, share.Due = quota.OfMax, n.cells[a.ID].limit.value
		}
		if share.Due == 0 {
			continue
		}
		if share.Kind < greatest.Kind || share.Kind == greatest.Kind && share.Compare(greatest) > 0 {
			greatest = share
		}
	}
	return greatest
}

// sumUp sets the vectors that do not change.
func (n *node) sumUp() {
	for i, cell := range n.cells {
		if cell.min.named {
			n.guaranteed = append(n.guaranteed, resources.Amount{ID: resources.ID(i), Value: cell.min.value})
		}
		if cell.limit.named {
			n.limited = append(n.limited, resources.Amount{ID: resources.ID(i), Value: cell.limit.value})
		}
	}
}

func (n *node) usage(jobs resources.ID) quota.NodeUsage {
	usage := quota.NodeUsage{Path: n.path, Jobs: n.used(jobs).Clamp(), Min: n.guaranteed, Max: n.limited}
	for i := range n.cells {
		cell, id := &n.cells[i], resources.ID(i)
		used := cell.used.Clamp()
		if used == 0 || id == jobs {
			continue
		}
		usage.Used = append(usage.Used, resources.Amount{ID: id, Value: used})
		if unqueued := cell.unqueued.Clamp(); unqueued > 0 {
			usage.Unqueued = append(usage.Unqueued, resources.Amount{ID: id, Value: unqueued})
		}
		if cell.min.named && used > cell.min.value {
			usage.Borrowed = append(usage.Borrowed, resources.Amount{ID: id, Value: used - cell.min.value})
		}
	}
	return usage
}
