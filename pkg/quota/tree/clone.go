package tree

import (
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var _ quota.Explainer = (*Tree)(nil)

// Clone returns a copy of the tree with everything charged and planned.
func (t *Tree) Clone(names *resources.Names) quota.Explainer { return t.copied(names) }

// copied returns a copy of the tree with everything charged, reserved and planned. The copies share what never
// changes.
func (t *Tree) copied(names *resources.Names) *Tree {
	c := &Tree{names: names, jobs: t.jobs, reserving: t.reserving, reclaims: t.reclaims, note: t.note, plan: new(*t.plan),
		nodes: make([]*node, len(t.nodes)), groups: make([]quota.Group, len(t.groups)), places: t.places, remains: map[*node]*group{},
		above: t.above, root: t.root, options: t.options}
	cells, chains := 0, 0
	for _, n := range t.nodes {
		cells += len(n.cells)
	}
	for _, g := range t.groups {
		chains += len(g.Nodes())
	}
	// All nodes are in one allocation, and so are all cells, groups and chains: a tree can have thousands.
	nodes, allCells := make([]node, len(t.nodes)), make([]cell, 0, cells)
	for i, n := range t.nodes {
		copied := &nodes[i]
		*copied = *n
		copied.plan = c.plan
		first := len(allCells)
		allCells = append(allCells, n.cells...)
		copied.cells = allCells[first:len(allCells):len(allCells)]
		if t.plan.cells > 0 {
			for j := range copied.cells {
				copied.cells[j].planned = clonePlanned(n.cells[j].planned)
			}
		}
		copied.others = nil
		if n.others != nil {
			copied.others = make(map[resources.ID]*cell, len(n.others))
			for id, cell := range n.others {
				other := *cell
				other.planned = clonePlanned(cell.planned)
				copied.others[id] = &other
			}
		}
		c.nodes[i] = copied
	}
	groups, allChains := make([]group, len(t.groups)), make([]*node, 0, chains)
	for i, g := range t.groups {
		original := g.(*group)
		first := len(allChains)
		for _, id := range original.ids {
			allChains = append(allChains, c.nodes[id])
		}
		groups[i] = group{tree: c, queue: original.queue, ids: original.ids, chain: allChains[first:len(allChains):len(allChains)]}
		c.groups[i] = &groups[i]
	}
	return c
}

func clonePlanned(p *planned) *planned {
	if p == nil {
		return nil
	}
	return new(*p)
}

// fieldMax and fieldMin are fields of a node.
const (
	fieldMax = "max"
	fieldMin = "min"
)
