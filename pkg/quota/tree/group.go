package tree

import (
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var _ quota.Verifier = (*group)(nil)

// group is a node that lists namespaces.
type group struct {
	tree  *Tree
	queue string
	// ids and chain are the nodes from the group's own node to the root.
	ids   []quota.NodeID
	chain []*node
	// say is sayOwed; nil before it is needed. It is stored because each method value would be an allocation.
	say func(*quota.Refusal) string
}

func (g *group) Path() string { return g.chain[0].path }

func (g *group) Queue() string { return g.queue }

func (g *group) Nodes() []quota.NodeID { return g.ids }

// Fits returns why the demand does not fit. It reports first that the demand can never fit, then the bounds of the
// group's own node, then paused borrowing, then the ancestors from the nearest to the root. Among several resources
// of a node, it reports the first by name.
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
	if g.tree.reserving && !g.tree.plan.unreserved {
		if r := g.paused(d); r != nil {
			return r
		}
	}
	r := g.kept(d)
	if at > 0 {
		r = g.noRoom(d, at, lacking)
	}
	if r != nil && g.tree.reclaims {
		g.untilReclaims(d, r)
	}
	return r
}

// StillRefuses looks only at the node and the resource of the cause.
func (g *group) StillRefuses(d quota.Demand, c quota.Cause) bool {
	if c.Node == "" || c.Resource == "" {
		return true
	}
	for at, n := range g.chain {
		if n.path != c.Node {
			continue
		}
		for _, a := range d.Requests {
			if a.Value > 0 && g.tree.names.Name(a.ID) == c.Resource {
				return g.stillRefuses(at, d, a, c)
			}
		}
	}
	return false
}

func (g *group) stillRefuses(at int, d quota.Demand, a resources.Amount, c quota.Cause) bool {
	n := g.chain[at]
	// A refusal by a limit other than that of the cause is a different refusal.
	lacks := func(b quota.Bound) bool { return a.Value > n.room(a.ID, b) && g.limitOf(at, a.ID, b) == c.Limit }
	switch c.Reason {
	case wellknown.ReasonExceedsMaxQuota:
		return neverFits(n, a) && g.limitOf(at, a.ID, quota.Max) == c.Limit
	case wellknown.ReasonExceedsMinQuota:
		r := g.beyondMin(d)
		return !d.Preemptible && r != nil && r.Cause() == c
	case wellknown.ReasonBorrowingPaused:
		return lacks(quota.Lending) && g.borrows(at, a)
	case wellknown.ReasonMaxJobs, wellknown.ReasonQuotaExceeded:
		fixed := !d.Preemptible && (at == 0 && lacks(quota.FixedMin) || g.isAside(a) && lacks(quota.FixedMax))
		return lacks(quota.Max) || lacks(quota.Kept) || fixed
	default:
		return true
	}
}

// reasonFor returns the reason of a refusal for an amount that is lacking now.
func (g *group) reasonFor(lacking resources.Amount) wellknown.Reason {
	if lacking.ID == g.tree.jobs {
		return wellknown.ReasonMaxJobs
	}
	return wellknown.ReasonQuotaExceeded
}

// noRoom returns the refusal for an amount that does not fit at a node of the chain.
func (g *group) noRoom(d quota.Demand, at int, lacking resources.Amount) *quota.Refusal {
	r := g.refusal(at, lacking, quota.Max, g.reasonFor(lacking))
	if lacking.ID != g.tree.jobs && (at > 0 || g.chain[0].inner) && g.isOwedOf(at, d, lacking) {
		if g.say == nil {
			g.say = g.sayOwed
		}
		r.Say = g.say
	}
	if g.tree.reserving && (at > 0 || g.chain[0].inner) {
		g.claim(d, r)
	}
	return r
}

// beyondMin returns the refusal of a non-preemptible demand. All non-preemptible units of the group together must stay
// within its guarantee. For resources that the guarantee does not name, they must not use what is guaranteed to others.
// A demand that requests no resource of the guarantee has no guarantee at all.
func (g *group) beyondMin(d quota.Demand) *quota.Refusal {
	own := g.chain[0]
	if a, above := g.first(own, d, aboveMin); above {
		return g.refusal(0, a, quota.FixedMin, wellknown.ReasonExceedsMinQuota)
	}
	work, asks := g.first(own, d, g.isWork)
	if !asks {
		return nil // max-jobs is a limit, so a min of it guarantees and bounds nothing
	}
	if _, guaranteed := g.first(own, d, isGuaranteed); !guaranteed {
		return g.refusal(0, work, quota.FixedMin, wellknown.ReasonExceedsMinQuota)
	}
	if at, a := g.find(d, func(n *node, a resources.Amount) bool { return g.isAside(a) && aboveFreeMax(n, a) }); at >= 0 {
		return g.refusal(at, a, quota.FixedMax, wellknown.ReasonExceedsMinQuota)
	}
	if a, lacking := g.first(own, d, hasNoFixedRoom); lacking {
		return g.refusal(0, a, quota.FixedMin, wellknown.ReasonQuotaExceeded)
	}
	if at, a := g.find(d, func(n *node, a resources.Amount) bool {
		return g.isAside(a) && a.Value > n.room(a.ID, quota.FixedMax)
	}); at >= 0 {
		return g.refusal(at, a, quota.FixedMax, wellknown.ReasonQuotaExceeded)
	}
	return nil
}

// isWork reports whether pods use the resource of the amount.
func (g *group) isWork(_ *node, a resources.Amount) bool { return a.ID != g.tree.jobs }

// isAside reports whether pods use the resource of the amount and the group's guarantee does not name it.
func (g *group) isAside(a resources.Amount) bool {
	return g.isWork(nil, a) && !isGuaranteed(g.chain[0], a)
}

func (g *group) Charge(c *quota.Charge) {
	for _, a := range c.Total() {
		g.use(c, a.ID, a.Value)
	}
}

func (g *group) Uncharge(c *quota.Charge) {
	for _, a := range c.Total() {
		g.use(c, a.ID, -a.Value)
		for _, n := range g.chain {
			if n.others != nil {
				n.clean(a.ID)
			}
		}
	}
}

// use adds an amount of the charge, or subtracts it if it is negative.
func (g *group) use(c *quota.Charge, id resources.ID, amount int64) {
	fixed := g.isFixed(c)
	aside := fixed && id != g.tree.jobs && !isGuaranteed(g.chain[0], resources.Amount{ID: id})
	borrowers := 0 // how many more branches exceed their guarantee now, from the group's own node up
	for i, n := range g.chain {
		cell := n.at(id)
		if i == 0 && n.inner {
			before := cell.isOwnAbove()
			cell.own = cell.own.Plus(amount)
			borrowers += more(before, cell.isOwnAbove())
		}
		cell.borrowers += borrowers
		before := cell.isAbove()
		cell.used = cell.used.Plus(amount)
		borrowers += more(before, cell.isAbove())
		if fixed && i == 0 {
			cell.fixed = cell.fixed.Plus(amount)
		}
		if aside {
			cell.aside = cell.aside.Plus(amount)
		}
		if c.Unqueued {
			cell.unqueued = cell.unqueued.Plus(amount)
		}
	}
}

// more returns the change of a count when something changes from before to after.
func more(before, after bool) int {
	switch {
	case before == after:
		return 0
	case after:
		return 1
	default:
		return -1
	}
}

// isFixed reports whether the charge counts as that of a non-preemptible unit: only if its group still exists.
func (g *group) isFixed(c *quota.Charge) bool { return !c.Demand.Preemptible && g.queue != "" }

// Spaces visits the limit of each node, and the bounds that matter: those of non-preemptible units and, if room can
// be reserved, the guarantees and what can be borrowed.
func (g *group) Spaces(c *quota.Charge, visit func(quota.Space)) {
	total, fixed := c.Total(), g.isFixed(c)
	for i, node := range g.ids {
		for _, a := range total {
			at := func(b quota.Bound) { visit(quota.Space{Node: node, Resource: a.ID, Bound: b}) }
			at(quota.Max)
			if g.tree.reserving {
				at(quota.Min)
				if i == 0 && g.chain[i].inner {
					at(quota.OwnMin)
				}
				if g.chain[i].reserved(a.ID) != (resources.Sum{}) {
					at(quota.Lending)
				}
			}
			if cell := g.chain[i].cell(a.ID); cell != nil && cell.planned != nil {
				at(quota.Kept)
			}
			if fixed && i == 0 {
				at(quota.FixedMin)
			}
			if fixed && g.isAside(a) {
				at(quota.FixedMax)
			}
		}
	}
}

// neverFits reports whether the request alone is above the limit of the node.
func neverFits(n *node, a resources.Amount) bool {
	limit, named := n.limit(a.ID)
	return named && a.Value > limit
}

// hasNoRoom reports whether the request and what is used together exceed the limit of the node.
func hasNoRoom(n *node, a resources.Amount) bool {
	return a.Value > n.room(a.ID, quota.Max)
}

// isGuaranteed reports whether the guarantee of the node names the resource.
func isGuaranteed(n *node, a resources.Amount) bool {
	_, named := n.min(a.ID)
	return named
}

// aboveMin reports whether the request alone exceeds the part of the node's guarantee that is not guaranteed to its
// children.
func aboveMin(n *node, a resources.Amount) bool {
	c := n.cell(a.ID)
	return c != nil && c.min.named && a.Value > c.ownMin()
}

// aboveFreeMax reports whether the request alone exceeds the part of the node's limit that is not guaranteed to its
// children.
func aboveFreeMax(n *node, a resources.Amount) bool {
	c := n.cell(a.ID)
	return c != nil && c.limit.named && a.Value > c.freeMax()
}

// hasNoFixedRoom reports whether the request and what non-preemptible units use together exceed the part of the
// node's guarantee that is not guaranteed to its children.
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

// first returns the first requested amount, by resource name, that the node refuses.
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
	switch c := n.cell(a.ID); {
	case c == nil:
	case bound == quota.FixedMin:
		r.Used = c.fixed.Clamp()
	case bound == quota.FixedMax:
		r.Used = c.aside.Clamp()
	}
	r.Limit = g.limitOf(at, a.ID, bound)
	return g.tree.noted(r)
}

// limitOf returns the limit that a refusal by a bound of a node of the chain shows.
func (g *group) limitOf(at int, id resources.ID, bound quota.Bound) int64 {
	c := g.chain[at].cell(id)
	switch {
	case c == nil:
		return 0
	case bound == quota.FixedMin:
		return c.ownMin()
	case bound == quota.FixedMax:
		return c.freeMax()
	default:
		return c.limit.value
	}
}
