package tree

import (
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var _ quota.Group = (*group)(nil)

// group is a node that lists namespaces.
type group struct {
	tree  *Tree
	queue string
	// ids and chain are the nodes from the own node of the group to the root.
	ids   []quota.NodeID
	chain []*node
}

func (g *group) Path() string { return g.chain[0].path }

func (g *group) Queue() string { return g.queue }

func (g *group) Nodes() []quota.NodeID { return g.ids }

// Fits returns why the demand does not fit. It reports first that the demand can never fit, then the
// bounds of the own node of the group, then paused borrowing, then the ancestors from the nearest
// to the root. Of several resources of a node, it reports the first by name.
func (g *group) Fits(d quota.Demand) *quota.Refusal {
	at, lacking := g.find(d, hasNoRoom)
	if at >= 0 {
		if never, excess := g.find(d, neverFits); never >= 0 {
			return g.refusal(never, excess, quota.Max, wellknown.ReasonExceedsMaxQuota)
		}
	}
	var own *quota.Refusal
	if !d.Preemptible {
		if own = g.beyondMin(d); own != nil && own.Final() {
			return own
		}
	}
	switch {
	case at == 0:
		return g.noRoom(d, at, lacking)
	case own != nil:
		return own
	}
	if g.tree.pausing {
		if r := g.paused(d); r != nil {
			return r
		}
	}
	if at > 0 {
		return g.noRoom(d, at, lacking)
	}
	return nil
}

// noRoom returns the refusal for an amount that does not fit at a node of the chain.
func (g *group) noRoom(d quota.Demand, at int, lacking resources.Amount) *quota.Refusal {
	reason := wellknown.ReasonQuotaExceeded
	if lacking.ID == g.tree.jobs {
		reason = wellknown.ReasonMaxJobs
	}
	r := g.refusal(at, lacking, quota.Max, reason)
	if !g.tree.pausing || at == 0 {
		return r
	}
	if g.Owed(d) {
		r.Owed = g.lacking(d)
	} else {
		r.Also = g.untilOwed(d)
	}
	return r
}

// Owed reports whether the group stays within its min with the demand, for each resource that min
// names. Min must name at least one requested resource. It does not bound resources that it does not
// name.
func (g *group) Owed(d quota.Demand) bool {
	own, guaranteed := g.chain[0], false
	for _, a := range d.Requests {
		if a.Value > own.room(a.ID, quota.Min) {
			return false
		}
		guaranteed = guaranteed || g.isGuaranteedWork(own, a)
	}
	return guaranteed
}

// beyondMin returns the refusal of a non-preemptible demand with which all non-preemptible units of
// the group together would be above min. A demand that requests no resource that min names has no
// guarantee at all.
func (g *group) beyondMin(d quota.Demand) *quota.Refusal {
	own := g.chain[0]
	if a, above := g.first(own, d, aboveMin); above {
		return g.refusal(0, a, quota.FixedMin, wellknown.ReasonExceedsMinQuota)
	}
	work, asks := g.first(own, d, g.isWork)
	if !asks {
		return nil // max-jobs is a limit, so a min of it guarantees nothing and bounds nothing
	}
	if _, guaranteed := g.first(own, d, g.isGuaranteedWork); !guaranteed {
		return g.refusal(0, work, quota.FixedMin, wellknown.ReasonExceedsMinQuota)
	}
	if a, lacking := g.first(own, d, hasNoFixedRoom); lacking {
		return g.refusal(0, a, quota.FixedMin, wellknown.ReasonQuotaExceeded)
	}
	return nil
}

// isWork reports whether the amount is of a resource that pods use.
func (g *group) isWork(_ *node, a resources.Amount) bool { return a.ID != g.tree.jobs }

func (g *group) isGuaranteedWork(n *node, a resources.Amount) bool {
	_, named := n.min(a.ID)
	return named && g.isWork(n, a)
}

// paused returns the refusal of a demand that would borrow what another unit is owed and waits for.
func (g *group) paused(d quota.Demand) *quota.Refusal {
	at, borrowed := g.find(d, func(n *node, a resources.Amount) bool {
		return a.Value > n.room(a.ID, quota.Lending) && g.borrows(a)
	})
	if at < 0 || g.Owed(d) {
		return nil
	}
	r := g.refusal(at, borrowed, quota.Lending, wellknown.ReasonBorrowingPaused)
	// The refusal also ends when the group can have the resource without borrowing.
	own := g.chain[0]
	switch min, named := own.min(borrowed.ID); {
	case !named:
		r.Also = g.untilOwed(d)
	case min > 0 && borrowed.Value <= min:
		r.Also = &quota.Lack{Space: quota.Space{Node: g.ids[0], Resource: borrowed.ID, Bound: quota.Min}, Amount: borrowed.Value}
	}
	return r
}

// borrows reports whether the group is above its min with the amount.
func (g *group) borrows(a resources.Amount) bool {
	_, named := g.chain[0].min(a.ID)
	return !named || a.Value > g.chain[0].room(a.ID, quota.Min)
}

// untilOwed returns the room within min that must be freed, for one resource, before the group is owed
// the demand. It returns nil if the group can never be owed the demand.
func (g *group) untilOwed(d quota.Demand) *quota.Lack {
	own := g.chain[0]
	var lack *quota.Lack
	for _, a := range d.Requests {
		min, named := own.min(a.ID)
		if !named || a.Value <= 0 {
			continue
		}
		if a.Value > min {
			return nil
		}
		if lack == nil && a.Value > own.room(a.ID, quota.Min) {
			lack = &quota.Lack{Space: quota.Space{Node: g.ids[0], Resource: a.ID, Bound: quota.Min}, Amount: a.Value}
		}
	}
	return lack
}

// lacking returns the spaces of the ancestors of the group in which the demand does not fit.
func (g *group) lacking(d quota.Demand) []quota.Space {
	var spaces []quota.Space
	for i, n := range g.chain {
		for _, a := range d.Requests {
			if i > 0 && a.Value > 0 && hasNoRoom(n, a) {
				spaces = append(spaces, quota.Space{Node: g.ids[i], Resource: a.ID, Bound: quota.Lending})
			}
		}
	}
	return spaces
}

func (g *group) Charge(c *quota.Charge) {
	total := c.Total()
	for i, n := range g.chain {
		n.charge(total, g.fixes(i, c.Demand), c.Unqueued)
	}
}

// fixes reports whether the demand is counted as non-preemptible at a node of the chain. It is at the
// own node of a group that still exists.
func (g *group) fixes(at int, d quota.Demand) bool {
	return at == 0 && !d.Preemptible && g.queue != ""
}

func (g *group) Release(c *quota.Charge) {
	total := c.Total()
	for i, n := range g.chain {
		n.release(total, g.fixes(i, c.Demand), c.Unqueued)
	}
}

// Spaces visits the limit of each node, and the min of each node where it matters: for
// non-preemptible units, and for all units if borrowing can be paused.
func (g *group) Spaces(c *quota.Charge, visit func(quota.Space)) {
	total := c.Total()
	for i, node := range g.ids {
		for _, a := range total {
			visit(quota.Space{Node: node, Resource: a.ID, Bound: quota.Max})
			if g.tree.pausing {
				visit(quota.Space{Node: node, Resource: a.ID, Bound: quota.Min})
			}
			if g.fixes(i, c.Demand) {
				visit(quota.Space{Node: node, Resource: a.ID, Bound: quota.FixedMin})
			}
		}
	}
}

// neverFits reports whether the request alone is above the limit of the node.
func neverFits(n *node, a resources.Amount) bool {
	limit, named := n.limit(a.ID)
	return named && a.Value > limit
}

// hasNoRoom reports whether the request and what is used are together above the limit of the node.
func hasNoRoom(n *node, a resources.Amount) bool {
	return a.Value > n.room(a.ID, quota.Max)
}

// aboveMin reports whether the request alone is above the min of the node.
func aboveMin(n *node, a resources.Amount) bool {
	min, named := n.min(a.ID)
	return named && a.Value > min
}

// hasNoFixedRoom reports whether the request and what non-preemptible units use are together above the
// min of the node.
func hasNoFixedRoom(n *node, a resources.Amount) bool {
	return a.Value > n.room(a.ID, quota.FixedMin)
}

// find returns the index in the chain of the first node that refuses a requested amount, and that
// amount. The index is -1 if no node does.
func (g *group) find(d quota.Demand, refuses func(*node, resources.Amount) bool) (int, resources.Amount) {
	for i, n := range g.chain {
		if a, found := g.first(n, d, refuses); found {
			return i, a
		}
	}
	return -1, resources.Amount{}
}

// first returns the first requested amount, by name of the resource, that the node refuses.
func (g *group) first(n *node, d quota.Demand, refuses func(*node, resources.Amount) bool) (first resources.Amount, found bool) {
	for _, a := range d.Requests {
		if a.Value <= 0 || !refuses(n, a) {
			continue
		}
		if !found || g.tree.names.Name(a.ID) < g.tree.names.Name(first.ID) {
			first, found = a, true
		}
	}
	return first, found
}

// refusal returns the refusal of the amount by a bound of a node of the chain.
func (g *group) refusal(at int, a resources.Amount, bound quota.Bound, reason wellknown.Reason) *quota.Refusal {
	n := g.chain[at]
	r := &quota.Refusal{
		Reason:   reason,
		Node:     n.path,
		Resource: g.tree.names.Name(a.ID),
		Asked:    a.Value,
		Used:     n.used(a.ID).Clamp(),
		Unqueued: n.unqueued(a.ID).Clamp(),
		Lack:     quota.Lack{Space: quota.Space{Node: g.ids[at], Resource: a.ID, Bound: bound}, Amount: a.Value},
	}
	r.Limit, _ = n.limit(a.ID)
	if bound == quota.FixedMin {
		r.Limit, _ = n.min(a.ID)
		r.Used = n.fixed(a.ID).Clamp()
	}
	return r
}
