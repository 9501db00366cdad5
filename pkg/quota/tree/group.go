package tree

import (
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var _ quota.Queued = (*group)(nil)

// group is a node that lists namespaces.
type group struct {
	tree  *Tree
	queue string
	// ids and chain are the group's own node first, the root last.
	ids   []quota.NodeID
	chain []*node
}

func (g *group) Path() string { return g.chain[0].path }

func (g *group) Queue() string { return g.queue }

func (g *group) Nodes() []quota.NodeID { return g.ids }

// Fits tells what refuses the demand. That it can never fit comes before that it
// does not fit now; else the nearest node comes first, and of its resources the
// first by name.
func (g *group) Fits(d quota.Demand) *quota.Refusal {
	if at, lacking := g.find(d, hasNoRoom); at >= 0 {
		return g.noRoom(d, at, lacking)
	}
	if !d.Preemptible {
		if r := g.beyondMin(d); r != nil {
			return r
		}
	}
	if g.tree.pausing {
		return g.paused(d)
	}
	return nil
}

// noRoom refuses the demand for the amount that has no room at a node of the chain.
func (g *group) noRoom(d quota.Demand, at int, lacking resources.Amount) *quota.Refusal {
	if never, excess := g.find(d, neverFits); never >= 0 {
		return g.refusal(never, excess, quota.Max, quota.ReasonExceedsMaxQuota)
	}
	if !d.Preemptible {
		if r := g.beyondMin(d); r != nil && r.Final() {
			return r
		}
	}
	reason := quota.ReasonQuotaExceeded
	if lacking.ID == g.tree.jobs {
		reason = quota.ReasonMaxJobs
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

// Owed tells whether the group stays within min with the demand: of each resource
// that min names, where it names one that is asked for. A resource that min does
// not name is not bounded by it.
func (g *group) Owed(d quota.Demand) bool {
	own, guaranteed := g.chain[0], false
	for _, a := range d.Requests {
		if _, named := own.min(a.ID); !named || a.Value <= 0 {
			continue
		}
		if a.Value > own.room(a.ID, quota.Min) {
			return false
		}
		guaranteed = guaranteed || a.ID != g.tree.jobs
	}
	return guaranteed
}

// beyondMin refuses a demand that is not preemptible where all such units of the
// group together would be above min. One that asks for nothing that min names has
// no guarantee at all.
func (g *group) beyondMin(d quota.Demand) *quota.Refusal {
	own, guaranteed := g.chain[0], false
	var lacking *quota.Refusal
	for _, a := range g.tree.names.Sorted(d.Requests) {
		min, named := own.min(a.ID)
		switch {
		case !named || a.Value <= 0:
			continue
		case a.Value > min:
			return g.refusal(0, a, quota.FixedMin, quota.ReasonExceedsMinQuota)
		case lacking == nil && a.Value > own.room(a.ID, quota.FixedMin):
			lacking = g.refusal(0, a, quota.FixedMin, quota.ReasonQuotaExceeded)
		}
		guaranteed = guaranteed || a.ID != g.tree.jobs
	}
	if guaranteed {
		return lacking
	}
	for _, a := range g.tree.names.Sorted(d.Requests) {
		if a.ID != g.tree.jobs && a.Value > 0 {
			return g.refusal(0, a, quota.FixedMin, quota.ReasonExceedsMinQuota)
		}
	}
	return nil // it asks for nothing
}

// paused refuses a demand that would borrow what somebody waits for to whom it is
// owed.
func (g *group) paused(d quota.Demand) *quota.Refusal {
	at, borrowed := g.find(d, func(n *node, a resources.Amount) bool {
		return a.Value > n.room(a.ID, quota.Lending) && g.borrows(a)
	})
	if at < 0 || g.Owed(d) {
		return nil
	}
	r := g.refusal(at, borrowed, quota.Lending, quota.ReasonBorrowingPaused)
	r.Also = g.untilOwed(d)
	return r
}

// borrows tells whether the group with the amount is above its min.
func (g *group) borrows(a resources.Amount) bool {
	min, named := g.chain[0].min(a.ID)
	return !named || min == 0 || a.Value > g.chain[0].room(a.ID, quota.Min)
}

// untilOwed is the room that has to be freed within min before the group is owed
// the demand, by one resource; nil when it will never be.
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

// lacking lists where nodes above the group have no room for the demand.
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

func (g *group) Charge(d quota.Demand) {
	for _, n := range g.chain {
		n.charge(d)
	}
}

func (g *group) Release(d quota.Demand) {
	for _, n := range g.chain {
		n.release(d)
	}
}

// neverFits tells that the request alone is above the node's limit.
func neverFits(n *node, a resources.Amount) bool {
	limit, named := n.limit(a.ID)
	return named && a.Value > limit
}

// hasNoRoom tells that the request together with what is used is above the
// node's limit.
func hasNoRoom(n *node, a resources.Amount) bool {
	return a.Value > n.room(a.ID, quota.Max)
}

// find the first node of the chain, by its place, that refuses something that the
// demand asks for, and what it refuses; -1 if none does.
func (g *group) find(d quota.Demand, refuses func(*node, resources.Amount) bool) (int, resources.Amount) {
	for i, n := range g.chain {
		refused, found := resources.Amount{}, false
		for _, a := range d.Requests {
			if a.Value <= 0 || !refuses(n, a) {
				continue
			}
			if !found || g.tree.names.Name(a.ID) < g.tree.names.Name(refused.ID) {
				refused, found = a, true
			}
		}
		if found {
			return i, refused
		}
	}
	return -1, resources.Amount{}
}

// refusal of the amount by a bound of a node of the chain.
func (g *group) refusal(at int, a resources.Amount, bound quota.Bound, reason quota.Reason) *quota.Refusal {
	n := g.chain[at]
	r := &quota.Refusal{
		Reason:   reason,
		Node:     n.path,
		Resource: g.tree.names.Name(a.ID),
		Asked:    a.Value,
		Used:     n.used(a.ID).clamp(),
		Lack:     quota.Lack{Space: quota.Space{Node: g.ids[at], Resource: a.ID, Bound: bound}, Amount: a.Value},
	}
	r.Limit, _ = n.limit(a.ID)
	if bound == quota.FixedMin {
		r.Limit, _ = n.min(a.ID)
		r.Used = n.fixed(a.ID).clamp()
	}
	return r
}
