// Package tree is the quota backend "elasticquota": a tree of nodes, each with
// limits that hold for everything below it.
//
// Words. A node's max is the most that may be used at and below it, its min is
// what it is guaranteed, and lends while idle. A node that lists namespaces is a
// group, an inner node as well. The limit of a node is its max times the oversell
// rate. A chain is a group's node and each one above it, up to the root.
//
// Invariants. For every node and resource, used is the exact sum of the demands
// charged at and below the node; it cannot overflow. A demand fits when at no
// node of its chain used and request together are above the limit, for the
// resources that it asks for and the limit names. A resource that max does not
// name is unlimited there, and one with max 0 is not to be had.
//
// A Tree is not safe for concurrent use. It is built once; its limits never
// change.
package tree

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var _ quota.Lender = (*Tree)(nil)

// Node is a node as its user wrote it.
type Node struct {
	Name string
	// Namespaces whose units belong to the node; "*" is each that no other node
	// lists.
	Namespaces []string
	// Min and Max by resource. One that is not named is not guaranteed, or not
	// limited.
	Min, Max map[string]resource.Quantity
	// Attributes are further settings.
	Attributes map[string]string
	Children   []Node
	// Faults that were found when the node was read, as "max: cpu: cannot read
	// ...". They make the tree invalid; New adds the node's path.
	Faults []string
}

// Options that hold for the whole tree.
type Options struct {
	// Oversell is the rate that every max is multiplied with. The zero Rate is 1.
	Oversell resources.Rate
	// PauseBorrowing: while a unit waits for what its group is guaranteed and others
	// have borrowed, nobody may borrow more of that.
	PauseBorrowing bool
}

// Tree is a valid tree and what is charged to it.
type Tree struct {
	names *resources.Names
	jobs  resources.ID
	// pausing: borrowing may be paused.
	pausing bool
	// nodes in tree order, a node before its children; the index is the NodeID.
	nodes  []*node
	groups []quota.Group
	places places
	// remains are groups that hold only what units of groups that are gone hold, by
	// their node.
	remains map[*node]*group
	above   []int
}

// New builds the tree. The error is an *InvalidError when the tree is invalid;
// warnings, of things that are allowed but rarely intended, are given either way.
// Both are in tree order. Names must be those that the demands are made with.
func New(names *resources.Names, root Node, opts Options) (t *Tree, warnings []string, err error) {
	nodes := check(root)
	var faults []string
	for _, c := range nodes {
		faults = append(faults, c.faults...)
		warnings = append(warnings, c.warnings...)
	}
	if faults != nil {
		return nil, warnings, &InvalidError{Faults: faults}
	}
	t = &Tree{names: names, jobs: names.ID(quota.JobsResource), pausing: opts.PauseBorrowing, remains: map[*node]*group{}}
	for _, c := range nodes {
		n := &node{path: c.path, name: c.Name}
		for _, name := range sortedKeys(c.max) {
			n.at(names.ID(name)).limit = bound{named: true, value: opts.Oversell.Floor(c.max[name])}
		}
		for _, name := range sortedKeys(c.min) {
			n.at(names.ID(name)).min = bound{named: true, value: c.min[name]}
		}
		n.sumUp()
		t.nodes = append(t.nodes, n)
		t.above = append(t.above, c.parent)
	}
	t.buildGroups(nodes)
	return t, warnings, nil
}

// buildGroups makes the nodes that list namespaces groups.
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
		t.places.add(g, c.namespaces)
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

// Nearest is the node with the path, or else the nearest above it; the root is
// always there.
func (t *Tree) Nearest(path string) quota.Group {
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

// Place finds the group of a unit in the namespace. Of several that list the
// namespace the quota name picks one, by the node's name or path; without it the
// first in tree order has the unit.
func (t *Tree) Place(namespace, quotaName string) (quota.Group, *quota.Refusal) {
	g, refusal := t.places.find(namespace, quotaName)
	if refusal != nil {
		return nil, refusal
	}
	return g, nil
}

// Groups are the nodes that list namespaces, in tree order. The slice is the
// tree's own.
func (t *Tree) Groups() []quota.Group {
	return t.groups
}

// Room is how much more of the resource fits the node's bound, in base units:
// the greatest int64 where the bound does not name the resource, negative where
// more is used than the bound allows. A demand fits at the node exactly when it
// asks for no more than the room below Max of each resource. An ID that is no
// node's has no room.
func (t *Tree) Room(s quota.Space) int64 {
	if s.Node < 0 || int(s.Node) >= len(t.nodes) {
		return 0
	}
	return t.nodes[s.Node].room(s.Resource, s.Bound)
}

// Share is how much of the node's min would be in use with the demand, or of its
// max where min names nothing that is asked for.
func (t *Tree) Share(id quota.NodeID, d quota.Demand) quota.Share { return t.nodes[id].share(d) }

// Pauses reports whether borrowing may be paused in the tree.
func (t *Tree) Pauses() bool { return t.pausing }

// Pause forbids further borrowing of the resource below the node.
func (t *Tree) Pause(id quota.NodeID, r resources.ID) { t.nodes[id].at(r).paused++ }

// Resume takes one Pause back, and reports whether it was the last.
func (t *Tree) Resume(id quota.NodeID, r resources.ID) bool {
	cell := t.nodes[id].at(r)
	cell.paused--
	return cell.paused == 0
}

// Usage of every node, in tree order: a node's place in it is its NodeID.
func (t *Tree) Usage() []quota.NodeUsage {
	usage := make([]quota.NodeUsage, len(t.nodes))
	for i, n := range t.nodes {
		usage[i] = n.usage(t.jobs)
	}
	return usage
}
