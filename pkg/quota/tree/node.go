package tree

import (
	"math"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// node is a node of a valid tree.
type node struct {
	path, name string
	// guaranteed and limited are what the cells say of min and limit.
	guaranteed, limited resources.Vector
	// cells by resource ID; those beyond its length are empty.
	cells []cell
}

// cell is what a node has of one resource.
type cell struct {
	used resources.Sum
	// fixed is the part of used that non-preemptible units of the node's own group
	// use.
	fixed resources.Sum
	limit bound
	min   bound
	// paused counts those for whom borrowing below the node is paused.
	paused int
}

// bound is an amount that a node may or may not name.
type bound struct {
	named bool
	value int64
}

// at is the node's cell of the resource, which is made if there is none.
func (n *node) at(r resources.ID) *cell {
	for int(r) >= len(n.cells) {
		n.cells = append(n.cells, cell{})
	}
	return &n.cells[r]
}

// has reports whether there is a cell of the resource.
func (n *node) has(r resources.ID) bool {
	return r >= 0 && int(r) < len(n.cells)
}

// limit of the resource at the node, if it has one.
func (n *node) limit(r resources.ID) (int64, bool) {
	if !n.has(r) {
		return 0, false
	}
	return n.cells[r].limit.value, n.cells[r].limit.named
}

// min of the resource at the node, if it has one.
func (n *node) min(r resources.ID) (int64, bool) {
	if !n.has(r) {
		return 0, false
	}
	return n.cells[r].min.value, n.cells[r].min.named
}

// used of the resource at and below the node.
func (n *node) used(r resources.ID) resources.Sum {
	if !n.has(r) {
		return resources.Sum{}
	}
	return n.cells[r].used
}

// fixed is what non-preemptible units of the node's own group use of the resource.
func (n *node) fixed(r resources.ID) resources.Sum {
	if !n.has(r) {
		return resources.Sum{}
	}
	return n.cells[r].fixed
}

// room of the resource below a bound.
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

// charge has the node use the vector, fixed when a non-preemptible unit of its own
// group does.
func (n *node) charge(v resources.Vector, fixed bool) {
	for _, a := range v {
		cell := n.at(a.ID)
		cell.used = cell.used.Plus(a.Value)
		if fixed {
			cell.fixed = cell.fixed.Plus(a.Value)
		}
	}
}

func (n *node) release(v resources.Vector, fixed bool) {
	for _, a := range v {
		cell := n.at(a.ID)
		cell.used = cell.used.Minus(a.Value)
		if fixed {
			cell.fixed = cell.fixed.Minus(a.Value)
		}
	}
}

// share that the node would have with the demand: of the resources that it asks
// for, the one of which the node would use the most of what is due to it. Others do
// not count: that a node uses much of what the demand does not ask for is no reason
// to pass it over, and would let one group below it starve another.
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

// sumUp makes vectors of what does not change.
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
		if cell.min.named && used > cell.min.value {
			usage.Borrowed = append(usage.Borrowed, resources.Amount{ID: id, Value: used - cell.min.value})
		}
	}
	return usage
}
