package tree

import (
	"math"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// plan is what the nodes of a tree share about the plan.
type plan struct {
	// inForce is whether rooms and shares are as planned.
	inForce bool
	// unreserved is whether reservations against borrowing are ignored.
	unreserved bool
	// cells is the number of cells with planned changes.
	cells int
}

// planned is how much more of a resource will be used at a node; it can be negative. The fields are those of a cell.
type planned struct{ used, own, fixed, aside resources.Sum }

// of returns how much more will be used at and below the node, or by its own group.
func (p *planned) of(own bool) resources.Sum {
	if own {
		return p.own
	}
	return p.used
}

// plannedRoom returns the room below a bound in a cell with planned changes. While the plan is not in force, it keeps
// room from demands that it was not made for.
func (n *node) plannedRoom(c *cell, b quota.Bound) int64 {
	more := *c.planned
	if !n.plan.inForce {
		switch b {
		case quota.Kept, quota.FixedMin, quota.FixedMax: // reductions count only later
			more = planned{used: atLeastNone(more.used), fixed: atLeastNone(more.fixed), aside: atLeastNone(more.aside)}
		default:
			more = planned{}
		}
	}
	as := cell{used: c.used.Add(more.used), own: c.own.Add(more.own), fixed: c.fixed.Add(more.fixed), aside: c.aside.Add(more.aside),
		limit: c.limit, min: c.min, below: c.below, borrowers: c.borrowers, reserved: c.reserved}
	if b == quota.Kept {
		if n.plan.inForce || !c.limit.named || more.used == (resources.Sum{}) {
			return math.MaxInt64
		}
		b = quota.Max
	}
	return n.roomIn(&as, b)
}

func atLeastNone(s resources.Sum) resources.Sum {
	if s.Exceeds(0) {
		return s
	}
	return resources.Sum{}
}

// Plan plans to charge the charge to the group.
func (t *Tree) Plan(g quota.Group, c *quota.Charge) { t.planUse(g.(*group), c, 1) }

// PlanUncharge plans to uncharge the charge from the group.
func (t *Tree) PlanUncharge(g quota.Group, c *quota.Charge) { t.planUse(g.(*group), c, -1) }

func (t *Tree) planUse(g *group, c *quota.Charge, sign int64) {
	fixed := g.isFixed(c)
	for _, a := range c.Total() {
		aside, amount := fixed && g.isAside(a), sign*a.Value
		for i, n := range g.chain {
			cell := n.at(a.ID)
			if cell.planned == nil {
				cell.planned = &planned{}
				t.plan.cells++
			}
			p := cell.planned
			p.used = p.used.Plus(amount)
			if i == 0 && n.inner {
				p.own = p.own.Plus(amount)
			}
			if fixed && i == 0 {
				p.fixed = p.fixed.Plus(amount)
			}
			if aside {
				p.aside = p.aside.Plus(amount)
			}
			if *p == (planned{}) {
				cell.planned = nil
				t.plan.cells--
				n.clean(a.ID)
			}
		}
	}
}

// AsPlanned calls do. Meanwhile, rooms, shares, and what fits and is owed are as if everything planned were done.
func (t *Tree) AsPlanned(do func()) {
	before := t.plan.inForce
	t.plan.inForce = true
	do()
	t.plan.inForce = before
}

// Unreserved calls do. Meanwhile, reservations against borrowing are ignored.
func (t *Tree) Unreserved(do func()) {
	before := t.plan.unreserved
	t.plan.unreserved = true
	do()
	t.plan.unreserved = before
}

// ResourceName returns the name of a resource.
func (t *Tree) ResourceName(id resources.ID) string { return t.names.Name(id) }

// Reclaims reports whether units of the group are evicted for units that are within the guarantee of another group:
// unless the node of the group or an ancestor has the attribute kube-queue/reclaim with value never.
func (t *Tree) Reclaims(from quota.Group) bool {
	g, is := from.(*group)
	return t.reclaims && is && !g.chain[0].exempt
}

// kept returns the refusal of a demand that fits now, but would use room that is planned for others.
func (g *group) kept(d quota.Demand) *quota.Refusal {
	if g.tree.plan.cells == 0 || g.tree.plan.inForce {
		return nil
	}
	at, a := g.find(d, func(n *node, a resources.Amount) bool { return a.Value > n.room(a.ID, quota.Kept) })
	if at < 0 {
		return nil
	}
	r := g.refusal(at, a, quota.Kept, g.reasonFor(a))
	r.Reserved = atLeastNone(g.chain[at].cell(a.ID).planned.used).Clamp()
	return r
}
