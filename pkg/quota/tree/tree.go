// Package tree is the quota backend "elasticquota": a tree of nodes, each with limits that apply to everything at and
// below it.
//
// Terms. The limit of a node is its max multiplied by the oversell rate. The guarantee of a node is its min or, if that
// is more, the sum of its children's guarantees, up to its max. A node lends the idle part of its guarantee. A node
// that lists namespaces is a quota group, whether it has children or not. A chain is the node of a group and all its
// ancestors up to the root.
//
// Invariants. For every node and resource, used is the exact sum of what is charged at and below the node; it cannot
// overflow. A demand fits if, at every node of its chain, used plus request is within the limit of each requested
// resource that the limit names. A resource that max does not name is unlimited, and a resource with max 0 cannot be
// used at all.
//
// A refusal reports the first cause in a fixed order, so that equal states give equal reasons: limits that the unit can
// never meet come before those it exceeds now, and BorrowingPaused before missing room above the group. The message
// names the node nearest to the job.
//
// A unit is refused if its label names no group of the namespace. If the label were ignored, a typo would charge the
// job to another quota. A released unit whose namespace no longer belongs to a group stays charged to the nearest
// remaining node of its path, because its pods still use the quota.
//
// Non-preemptible units of a group stay within its guarantee. For resources that the guarantee does not name, all such
// units at and below a node together use at most its max minus what is guaranteed to its children. Otherwise they could
// hold what is guaranteed to others and never return it.
//
// Warnings can depend on a Cluster, but no decision depends on warnings. A correct tree causes none, because
// administrators would learn to ignore them.
//
// A Tree is not safe for concurrent use. It is built once and its limits never change.
package tree

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var (
	_ quota.Lender     = (*Tree)(nil)
	_ quota.Planner    = (*Tree)(nil)
	_ quota.JobLimiter = (*Tree)(nil)
	_ quota.Forgetter  = (*Tree)(nil)
)

// Node is a node as the user wrote it.
type Node struct {
	Name string
	// Namespaces are the namespaces whose units belong to the node. "*" means all namespaces that
	// no other node lists.
	Namespaces []string
	// Min and Max are by resource. A resource that is missing is not guaranteed or not limited.
	Min, Max map[string]resource.Quantity
	// Attributes are further settings.
	Attributes map[string]string
	Children   []Node
	// Faults were found when the node was read, such as "max: cpu: expected a quantity". They make
	// the tree invalid. New adds the path of the node to them.
	Faults []string
	// Warnings were found when the node was read. New adds the path of the node to them.
	Warnings []string
}

// Options apply to the complete tree.
type Options struct {
	// Oversell is the rate that every max is multiplied by. The zero Rate is 1.
	Oversell resources.Rate
	// PauseBorrowing pauses further borrowing of a resource while a unit waits for the part of its
	// guarantee that others have borrowed.
	PauseBorrowing bool
	// Reclaim is whether units that have borrowed are evicted for units that are within the guarantee of
	// their group.
	Reclaim bool
	// Note is added to every refusal; empty for none. With a note, a refusal that only a change of the tree can
	// resolve is reported as a different cause than without it.
	Note string
}

// Tree is a valid tree and what is charged to it.
type Tree struct {
	names *resources.Names
	jobs  resources.ID
	// reserving is whether room can be reserved for units that are owed it.
	reserving bool
	// reclaims is whether units that have borrowed are evicted for units that are within the guarantee of
	// their group.
	reclaims bool
	// note is added to every refusal.
	note string
	plan *plan
	// nodes are in tree order, each before its children. The index is the NodeID.
	nodes  []*node
	groups []quota.Group
	places *places
	// remains are the groups, by node, that units of deleted groups are charged to.
	remains map[*node]*group
	above   []int
	// root and options are what the tree was built from.
	root    Node
	options Options
}

// New returns the tree. The error is an *InvalidError if the tree is invalid. Warnings are about settings that are
// allowed but rarely intended, and are returned in either case. Both are in tree order. Function Warnings finds more
// warnings, which depend on the cluster. Demands must be built with the same Names.
func New(names *resources.Names, root Node, opts Options) (t *Tree, warnings []string, err error) {
	nodes := check(root, Cluster{})
	var faults []string
	for _, c := range nodes {
		faults = append(faults, c.faults...)
		warnings = append(warnings, c.warnings...)
	}
	if faults != nil {
		return nil, warnings, &InvalidError{Faults: faults}
	}
	t = &Tree{names: names, jobs: names.ID(quota.JobsResource), reserving: opts.PauseBorrowing || opts.Reclaim, reclaims: opts.Reclaim, note: opts.Note, plan: &plan{}, places: &places{}, remains: map[*node]*group{},
		root: root, options: opts}
	columns := newColumns(t.named(nodes))
	for _, c := range nodes {
		n := &node{path: c.path, name: c.Name, inner: len(c.children) > 0, columns: columns, plan: t.plan}
		n.exempt = c.Attributes[wellknown.ReclaimAttribute] == wellknown.ReclaimNever || c.parent >= 0 && t.nodes[c.parent].exempt
		for _, name := range sortedKeys(c.max) {
			n.at(names.ID(name)).limit = bound{named: true, value: opts.Oversell.Floor(c.max[name])}
		}
		for _, name := range sortedKeys(c.guarantee) {
			cell := n.at(names.ID(name))
			cell.min = bound{named: true, value: c.guarantee[name]}
			cell.below = c.guaranteedBelow(name).Clamp()
		}
		n.limited, n.guaranteed = n.limitedBy(), t.guaranteeOf(c)
		t.nodes = append(t.nodes, n)
		t.above = append(t.above, c.parent)
	}
	t.buildGroups(nodes)
	return t, warnings, nil
}

// guaranteeOf returns the guarantee of the node and its min of JobsResource, which guarantees nothing.
func (t *Tree) guaranteeOf(c *checkedNode) (guaranteed resources.Vector) {
	for _, name := range sortedKeys(c.guarantee) {
		guaranteed = guaranteed.With(t.names.ID(name), c.guarantee[name])
	}
	if jobs, named := c.min[quota.JobsResource]; named {
		guaranteed = guaranteed.With(t.jobs, jobs)
	}
	return guaranteed
}

// named returns the resources that the nodes name, and JobsResource.
func (t *Tree) named(nodes []*checkedNode) resources.IDs {
	var named resources.IDs
	named.Add(t.jobs)
	for _, c := range nodes {
		for _, list := range []map[string]int64{c.max, c.min} {
			for _, name := range sortedKeys(list) {
				named.Add(t.names.ID(name))
			}
		}
	}
	return named
}

// buildGroups creates a group for each node that lists namespaces.
func (t *Tree) buildGroups(checked []*checkedNode) {
	var paths []string
	for _, c := range checked {
		if len(c.namespaces) > 0 {
			paths = append(paths, c.path)
		}
	}
	queues := quota.QueueNames(paths)
	for id, c := range checked {
		if len(c.namespaces) == 0 {
			continue
		}
		g := t.groupAt(id, queues[len(t.groups)])
		t.groups = append(t.groups, g)
		t.places.add(len(t.groups)-1, c.path, c.namespaces)
	}
}

func (t *Tree) groupAt(node int, queue string) *group {
	g := &group{tree: t, queue: queue}
	for at := node; at >= 0; at = t.above[at] {
		g.ids = append(g.ids, quota.NodeID(at))
		g.chain = append(g.chain, t.nodes[at])
	}
	return g
}

// Nearest returns the group of the node with the path, or of its nearest ancestor that exists. The
// root always exists.
func (t *Tree) Nearest(path string) quota.Group { return t.nearest(path) }

func (t *Tree) nearest(path string) *group {
	nearest := 0
	for i, n := range t.nodes {
		if len(n.path) > len(t.nodes[nearest].path) && (path == n.path || strings.HasPrefix(path, n.path+"/")) {
			nearest = i
		}
	}
	n := t.nodes[nearest]
	if t.remains[n] == nil {
		t.remains[n] = t.groupAt(nearest, "")
	}
	return t.remains[n]
}

// systemNamespace contains the pods that serve the cluster.
const systemNamespace = "kube-system"

// Unqueued returns the group of the namespace. A node that lists "*" does not count pods of kube-system
// that belong to no unit, because they serve the whole cluster.
func (t *Tree) Unqueued(namespace string) quota.Group {
	if namespace == systemNamespace && t.places.listed[namespace] == nil {
		return nil
	}
	g, refusal := t.find(namespace, "")
	if refusal != nil {
		return nil
	}
	return g
}

// Place returns the group of a unit in the namespace. If several groups list the namespace, the quota
// name selects one by the name or path of its node. Without a quota name, the unit belongs to the
// first in tree order.
func (t *Tree) Place(namespace, quotaName string) (quota.Group, *quota.Refusal) {
	g, refusal := t.find(namespace, quotaName)
	if refusal != nil {
		return nil, t.noted(refusal)
	}
	return g, nil
}

// Note returns why this tree is in force although another one was written; empty for none.
func (t *Tree) Note() string { return t.note }

// noted adds the note to the refusal.
func (t *Tree) noted(r *quota.Refusal) *quota.Refusal {
	r.Note = t.note
	if t.note != "" && r.Final() {
		r.Detail = "noted"
	}
	return r
}

// Groups returns the nodes that list namespaces, in tree order. The caller must not change the slice.
func (t *Tree) Groups() []quota.Group {
	return t.groups
}

// Room returns how much more of the resource fits below the bound of the node, in base units: MaxInt64 if the bound
// does not name the resource, negative if more is used than the bound allows. A demand fits at the node exactly when it
// requests at most the room below Max of each resource. An unknown node has no room.
func (t *Tree) Room(s quota.Space) int64 {
	if s.Node < 0 || int(s.Node) >= len(t.nodes) {
		return 0
	}
	return t.nodes[s.Node].room(s.Resource, s.Bound)
}

// Excess describes the exceeded limit of the space; false if it is not exceeded.
func (t *Tree) Excess(s quota.Space) (quota.Excess, bool) {
	if s.Bound != quota.Max || t.Room(s) >= 0 || int(s.Node) >= len(t.nodes) || s.Node < 0 {
		return quota.Excess{}, false
	}
	n := t.nodes[s.Node]
	limit, _ := n.limit(s.Resource)
	return quota.Excess{Node: n.path, Resource: t.names.Name(s.Resource), Used: n.used(s.Resource).Clamp(), Limit: limit,
		Unqueued: n.unqueued(s.Resource).Clamp()}, true
}

// Share returns the share of the branch's guarantee that would be used with the demand, or the share of its max if
// none of the requested resources is guaranteed to it. JobsResource does not count.
func (t *Tree) Share(b quota.Branch, d quota.Demand) quota.Share {
	return t.nodes[b.Node].share(d, b.Own, t.jobs)
}

// Reserves reports whether room can be reserved in the tree.
func (t *Tree) Reserves() bool { return t.reserving }

// Reserve adds the amount to what cannot be borrowed at and below the node.
func (t *Tree) Reserve(id quota.NodeID, r resources.ID, amount int64) {
	cell := t.nodes[id].at(r)
	cell.reserved = cell.reserved.Plus(amount)
	t.nodes[id].clean(r)
}

// JobsID returns the ID of JobsResource.
func (t *Tree) JobsID() resources.ID { return t.jobs }

// Jobs returns the number of units of the branch that hold quota.
func (t *Tree) Jobs(b quota.Branch) int64 {
	c := t.nodes[b.Node].cell(t.jobs)
	switch {
	case c == nil:
		return 0
	case b.Own && t.nodes[b.Node].inner:
		return c.own.Clamp()
	default:
		return c.used.Clamp()
	}
}

// Usage returns the usage of every node in tree order, so that the index is the NodeID.
func (t *Tree) Usage() []quota.NodeUsage {
	usage := make([]quota.NodeUsage, len(t.nodes))
	for i, n := range t.nodes {
		usage[i] = n.usage(t.jobs)
	}
	usage[0].Borrowed = nil // the root has no lender
	return usage
}

// Uses adds to the set the resources that are limited, guaranteed, charged, reserved or planned.
func (t *Tree) Uses(used *resources.IDs) {
	used.Add(t.jobs)
	for _, id := range t.nodes[0].columns.ids {
		used.Add(id)
	}
	for _, n := range t.nodes {
		for id := range n.others {
			used.Add(id)
		}
	}
}

// Forget does nothing: a tree always has the same nodes, and stores nothing about unused resources.
func (t *Tree) Forget(resources.IDs, func(quota.NodeID) bool) {}
