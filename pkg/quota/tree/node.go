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
	// guaranteed and limited are the min and the limit, including those of JobsResource.
	guaranteed, limited resources.Vector
	// inner is whether the node has children.
	inner bool
	// exempt is whether the node or an ancestor protects units at and below it from eviction for another group.
	exempt bool
	// plan is the plan of the tree.
	plan *plan
	// columns are the columns of the tree, and cells the cells of its named resources by column.
	columns *columns
	cells   []cell
	// others are the cells of other resources. None of them is empty, so nothing is stored for unused resources.
	others map[resources.ID]*cell
}

// columns number the resources in the min or max of any node of the tree. Units can request thousands of others,
// which must cost nothing at nodes that they are not charged to.
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

// cell is the state of one resource at a node. The fields that each charge uses come first, in one cache line.
type cell struct {
	used  resources.Sum
	limit bound
	// min is the guarantee, and below the sum of the children's guarantees.
	min   bound
	below int64
	// borrowers is the number of branches at and below the node that use more than their guarantee.
	borrowers int
	// own is the part of used that is charged to the own group of an inner node.
	own resources.Sum
	// fixed is the part of used that belongs to non-preemptible units of the node's own group. aside is the part that
	// belongs to non-preemptible units at and below the node whose group's guarantee does not name the resource.
	fixed, aside resources.Sum
	// unqueued is the part of used that pods without a unit use.
	unqueued resources.Sum
	// reserved is what cannot be borrowed at and below the node.
	reserved resources.Sum
	// planned is how much more will be used as planned; nil if nothing is planned.
	planned *planned
}

// isAbove reports whether use exceeds the guarantee.
func (c *cell) isAbove() bool { return c.used.Exceeds(c.min.value) }

// ownMin is the part of the guarantee that is not guaranteed to the children.
func (c *cell) ownMin() int64 { return max(c.min.value-c.below, 0) }

// isOwnAbove reports whether the own group of an inner node uses more than is guaranteed to it.
func (c *cell) isOwnAbove() bool { return c.own.Exceeds(c.ownMin()) }

// freeMax is the part of the limit that is not guaranteed to the children.
func (c *cell) freeMax() int64 { return max(c.limit.value-c.below, 0) }

// bound is an amount that is a limit only if it is named.
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

// clean removes the cell of a resource that the tree does not name, if the cell is empty.
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

// reserved returns how much of the resource cannot be borrowed.
func (n *node) reserved(r resources.ID) resources.Sum {
	if c := n.cell(r); c != nil {
		return c.reserved
	}
	return resources.Sum{}
}

// unqueued returns how much of the resource is used by pods that belong to no unit.
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
	case c == nil && b == quota.Borrowers:
		return 0
	case c == nil:
		return math.MaxInt64
	case c.planned != nil:
		return n.plannedRoom(c, b)
	default:
		return n.roomIn(c, b)
	}
}

// roomIn returns the room below a bound of a cell, regardless of the plan.
func (n *node) roomIn(c *cell, b quota.Bound) int64 {
	switch {
	case b == quota.Max && c.limit.named:
		return c.used.Below(c.limit.value)
	case b == quota.Min && c.min.named:
		return c.used.Below(c.min.value)
	case b == quota.OwnMin && c.min.named:
		if n.inner {
			return c.own.Below(c.ownMin())
		}
		return c.used.Below(c.min.value)
	case b == quota.FixedMin && c.min.named:
		return c.fixed.Below(c.ownMin())
	case b == quota.FixedMax && c.limit.named:
		return c.aside.Below(c.freeMax())
	case b == quota.Lending && c.limit.named && c.reserved != (resources.Sum{}):
		return c.used.Add(c.reserved).Below(c.limit.value)
	case b == quota.Borrowers:
		return int64(c.borrowers)
	default:
		return math.MaxInt64
	}
}

// share returns the node's share including the demand: the dominant share among the requested resources. Other
// resources do not count: otherwise a node would be passed over because of resources that the demand does not
// request, and one group below it could starve another. If own is set, it is the share of the node's own group.
func (n *node) share(d quota.Demand, own bool, jobs resources.ID) quota.Share {
	greatest := quota.Share{Kind: quota.OfNothing}
	for _, a := range d.Requests {
		c := n.cell(a.ID)
		if a.Value <= 0 || c == nil || a.ID == jobs {
			continue
		}
		used, due := c.used, c.min.value
		if own && n.inner {
			used, due = c.own, c.ownMin()
		}
		if c.planned != nil && n.plan.inForce {
			used = used.Add(c.planned.of(own && n.inner))
		}
		share := quota.Share{Kind: quota.OfMin, Used: used.Plus(a.Value).Clamp(), Due: due}
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

// limitedBy lists the limits of the cells.
func (n *node) limitedBy() (limited resources.Vector) {
	n.each(func(id resources.ID, c *cell) {
		if c.limit.named {
			limited = append(limited, resources.Amount{ID: id, Value: c.limit.value})
		}
	})
	return limited
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
