package tree

import (
	"maps"
	"math"
	"slices"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// node is a node of a valid tree.
type node struct {
	path, name string
	// guaranteed and limited are the min and the limit of the cells.
	guaranteed, limited resources.Vector
	// columns are those of the tree, and cells the cells of its named resources by column.
	columns *columns
	cells   []cell
	// others are the cells of other resources. None of them is empty, so nothing is stored of
	// resources that nobody uses.
	others map[resources.ID]*cell
}

// columns number the resources that any node of the tree names in min or max. Units may request
// thousands of others, which must cost nothing at the nodes that they are not charged to.
type columns struct {
	// ids are the resources by column, in the order of the IDs. byID are the columns plus 1 by ID; 0 for
	// other resources.
	ids  []resources.ID
	byID []int32
}

func newColumns(named resources.IDs) *columns {
	c := &columns{byID: make([]int32, len(named))}
	for i, is := range named {
		if is {
			c.ids = append(c.ids, resources.ID(i))
			c.byID[i] = int32(len(c.ids))
		}
	}
	return c
}

// of returns the column of a resource, or false if the tree does not name it.
func (c *columns) of(r resources.ID) (int, bool) {
	if r < 0 || int(r) >= len(c.byID) || c.byID[r] == 0 {
		return 0, false
	}
	return int(c.byID[r]) - 1, true
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

// cell returns the cell of the resource; nil if there is none.
func (n *node) cell(r resources.ID) *cell {
	column, named := n.columns.of(r)
	switch {
	case !named:
		return n.others[r]
	case column < len(n.cells):
		return &n.cells[column]
	default:
		return nil
	}
}

// at returns the cell of the resource. It creates the cell if necessary.
func (n *node) at(r resources.ID) *cell {
	if c := n.cell(r); c != nil {
		return c
	}
	if column, named := n.columns.of(r); named {
		n.cells = append(n.cells, make([]cell, column+1-len(n.cells))...)
		return &n.cells[column]
	}
	c := n.others[r]
	if c == nil {
		if n.others == nil {
			n.others = map[resources.ID]*cell{}
		}
		c = &cell{}
		n.others[r] = c
	}
	return c
}

// clean removes the cell of a resource that the tree does not name if it is empty.
func (n *node) clean(r resources.ID) {
	if c := n.others[r]; c == nil || *c != (cell{}) {
		return
	}
	delete(n.others, r)
	if len(n.others) == 0 {
		n.others = nil // a map never shrinks
	}
}

// limit returns the limit of the resource, and whether it has one.
func (n *node) limit(r resources.ID) (int64, bool) {
	if c := n.cell(r); c != nil {
		return c.limit.value, c.limit.named
	}
	return 0, false
}

// min returns the guarantee of the resource, and whether it has one.
func (n *node) min(r resources.ID) (int64, bool) {
	if c := n.cell(r); c != nil {
		return c.min.value, c.min.named
	}
	return 0, false
}

// used returns how much of the resource is used at and below the node.
func (n *node) used(r resources.ID) resources.Sum {
	if c := n.cell(r); c != nil {
		return c.used
	}
	return resources.Sum{}
}

// fixed returns how much of the resource non-preemptible units of the own group of the node use.
func (n *node) fixed(r resources.ID) resources.Sum {
	if c := n.cell(r); c != nil {
		return c.fixed
	}
	return resources.Sum{}
}

// unqueued returns how much of the resource pods use that belong to no unit.
func (n *node) unqueued(r resources.ID) resources.Sum {
	if c := n.cell(r); c != nil {
		return c.unqueued
	}
	return resources.Sum{}
}

// room returns how much of the resource is left below a bound.
func (n *node) room(r resources.ID, b quota.Bound) int64 {
	c := n.cell(r)
	switch {
	case c == nil:
		return math.MaxInt64
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
		if n.others != nil {
			n.clean(a.ID)
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
		c := n.cell(a.ID)
		if a.Value <= 0 || c == nil {
			continue
		}
		share := quota.Share{Kind: quota.OfMin, Used: c.used.Plus(a.Value).Clamp(), Due: c.min.value}
		if share.Due == 0 {
			share.Kind, share.Due = quota.OfMax, c.limit.value
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
	n.each(func(id resources.ID, c *cell) {
		if c.min.named {
			n.guaranteed = append(n.guaranteed, resources.Amount{ID: id, Value: c.min.value})
		}
		if c.limit.named {
			n.limited = append(n.limited, resources.Amount{ID: id, Value: c.limit.value})
		}
	})
}

// each calls visit with each cell in the order of the IDs.
func (n *node) each(visit func(resources.ID, *cell)) {
	others := slices.Sorted(maps.Keys(n.others))
	upTo := func(end int) {
		for len(others) > 0 && int(others[0]) < end {
			visit(others[0], n.others[others[0]])
			others = others[1:]
		}
	}
	for column := range n.cells {
		id := n.columns.ids[column]
		upTo(int(id))
		visit(id, &n.cells[column])
	}
	upTo(math.MaxInt)
}

func (n *node) usage(jobs resources.ID) quota.NodeUsage {
	usage := quota.NodeUsage{Path: n.path, Jobs: n.used(jobs).Clamp(), Min: n.guaranteed, Max: n.limited}
	n.each(func(id resources.ID, cell *cell) {
		used := cell.used.Clamp()
		if used == 0 || id == jobs {
			return
		}
		usage.Used = append(usage.Used, resources.Amount{ID: id, Value: used})
		if unqueued := cell.unqueued.Clamp(); unqueued > 0 {
			usage.Unqueued = append(usage.Unqueued, resources.Amount{ID: id, Value: unqueued})
		}
		if cell.min.named && used > cell.min.value {
			usage.Borrowed = append(usage.Borrowed, resources.Amount{ID: id, Value: used - cell.min.value})
		}
	})
	return usage
}
