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
	at, lacking := g.find(d, (*node).hasNoRoom)
	if at < 0 {
		return nil
	}
	if never, excess := g.find(d, (*node).neverFits); never >= 0 {
		return g.refusal(never, excess, quota.ReasonExceedsMaxQuota)
	}
	if lacking.ID == g.tree.jobs {
		return g.refusal(at, lacking, quota.ReasonMaxJobs)
	}
	return g.refusal(at, lacking, quota.ReasonQuotaExceeded)
}

func (g *group) Charge(d quota.Demand) {
	for _, n := range g.chain {
		n.charge(d.Requests)
	}
}

func (g *group) Release(d quota.Demand) {
	for _, n := range g.chain {
		n.release(d.Requests)
	}
}

// neverFits tells that the request alone is above the node's limit.
func (n *node) neverFits(a resources.Amount) bool {
	limit, named := n.limit(a.ID)
	return named && a.Value > limit
}

// hasNoRoom tells that the request together with what is used is above the
// node's limit.
func (n *node) hasNoRoom(a resources.Amount) bool {
	return a.Value > n.room(a.ID)
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

// refusal of the amount at a node of the chain.
func (g *group) refusal(at int, a resources.Amount, reason quota.Reason) *quota.Refusal {
	n := g.chain[at]
	limit, _ := n.limit(a.ID)
	return &quota.Refusal{
		Reason:   reason,
		Node:     n.path,
		Resource: g.tree.names.Name(a.ID),
		Asked:    a.Value,
		Used:     n.used(a.ID).clamp(),
		Limit:    limit,
		Lack:     quota.Lack{Node: g.ids[at], Resource: a.ID, Amount: a.Value},
	}
}
