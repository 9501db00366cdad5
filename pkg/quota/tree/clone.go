package tree

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var _ quota.Explainer = (*Tree)(nil)

// Clone returns a copy of the tree with what is charged and planned.
func (t *Tree) Clone(names *resources.Names) quota.Explainer {
	planned := *t.plan
	c := &Tree{names: names, jobs: t.jobs, reserving: t.reserving, reclaims: t.reclaims, note: t.note, plan: &planned,
		nodes: make([]*node, len(t.nodes)), remains: map[*node]*group{}, above: t.above, root: t.root, options: t.options}
	copies := make([]node, len(t.nodes))
	for i, n := range t.nodes {
		copies[i] = *n
		copies[i].plan = c.plan
		copies[i].cells = slices.Clone(n.cells)
		for j := range copies[i].cells {
			copies[i].cells[j].planned = clonePlanned(n.cells[j].planned)
		}
		copies[i].others = nil
		if n.others != nil {
			copies[i].others = make(map[resources.ID]*cell, len(n.others))
			for id, cell := range n.others {
				other := *cell
				other.planned = clonePlanned(cell.planned)
				copies[i].others[id] = &other
			}
		}
		c.nodes[i] = &copies[i]
	}
	groups := make(map[*group]*group, len(t.groups))
	for _, g := range t.groups {
		original := g.(*group)
		copied := &group{tree: c, queue: original.queue, ids: original.ids, chain: make([]*node, len(original.ids))}
		for i, id := range original.ids {
			copied.chain[i] = c.nodes[id]
		}
		groups[original] = copied
		c.groups = append(c.groups, copied)
	}
	c.places = t.places.mapped(groups)
	return c
}

func clonePlanned(p *planned) *planned {
	if p == nil {
		return nil
	}
	copied := *p
	return &copied
}

// mapped returns the places with other groups.
func (p *places) mapped(groups map[*group]*group) (mapped places) {
	other := func(all []*group) (others []*group) {
		for _, g := range all {
			others = append(others, groups[g])
		}
		return others
	}
	if p.listed != nil {
		mapped.listed = make(map[string][]*group, len(p.listed))
		for namespace, all := range p.listed {
			mapped.listed[namespace] = other(all)
		}
	}
	mapped.others = other(p.others)
	return mapped
}

// Lacks returns a refusal for every limit of the chain below which the demand does not fit now.
func (t *Tree) Lacks(of quota.Group, d quota.Demand) (lacks []*quota.Refusal) {
	g, is := of.(*group)
	if !is {
		return nil
	}
	add := func(at int, a resources.Amount, bound quota.Bound) *quota.Refusal {
		r := g.refusal(at, a, bound, g.reasonFor(a))
		lacks = append(lacks, r)
		return r
	}
	for at, n := range g.chain {
		for _, a := range g.byName(d) {
			if neverFits(n, a) {
				continue
			}
			switch {
			case hasNoRoom(n, a):
				add(at, a, quota.Max)
			case at == 0 && !d.Preemptible && !aboveMin(n, a) && hasNoFixedRoom(n, a):
				add(at, a, quota.FixedMin)
			case !d.Preemptible && g.isAside(a) && !aboveFreeMax(n, a) && a.Value > n.room(a.ID, quota.FixedMax):
				add(at, a, quota.FixedMax)
			case t.reserving && !t.plan.unreserved && a.Value > n.room(a.ID, quota.Lending) && g.borrows(at, a):
				add(at, a, quota.Lending).Reserved = n.reserved(a.ID).Clamp()
			case t.plan.cells > 0 && a.Value > n.room(a.ID, quota.Kept):
				add(at, a, quota.Kept).Reserved = atLeastNone(n.cell(a.ID).planned.used).Clamp()
			}
		}
	}
	return lacks
}

// byName returns the requests of more than nothing, in the order of the names of the resources.
func (g *group) byName(d quota.Demand) (requests resources.Vector) {
	for _, a := range d.Requests {
		if a.Value > 0 {
			requests = append(requests, a)
		}
	}
	slices.SortFunc(requests, func(a, b resources.Amount) int {
		return strings.Compare(g.tree.names.Name(a.ID), g.tree.names.Name(b.ID))
	})
	return requests
}

// Holds returns how much of the resource the charge uses at the node of the refusal. Of a limit on non-preemptible
// units, others use nothing.
func (t *Tree) Holds(r *quota.Refusal, path string, c *quota.Charge) int64 {
	if path != r.Node && !strings.HasPrefix(path, r.Node+"/") {
		return 0
	}
	switch r.Lack.Bound {
	case quota.FixedMin:
		if c.Demand.Preemptible || path != r.Node {
			return 0
		}
	case quota.FixedMax:
		if c.Demand.Preemptible {
			return 0
		}
	}
	used, _ := c.Total().Get(r.Lack.Resource)
	return used
}

// Known returns the vector: the names of a tree are those of pods.
func (t *Tree) Known(v resources.Vector) resources.Vector { return v }

// Raised returns the tree with greater limits and with the charges.
func (t *Tree) Raised(names *resources.Names, raises []quota.Raise, charged []quota.Charged) (quota.Explainer, error) {
	root := t.root
	for _, r := range raises {
		w, err := t.Written(r)
		if err != nil {
			return nil, err
		}
		for _, q := range resources.Quantities(t.names, resources.Vector{{ID: r.Resource, Value: w.To}}) {
			root = withAmount(root, 0, int(r.Node), w, q)
		}
	}
	raised, _, err := New(names, root, t.options)
	if err != nil {
		return nil, err
	}
	groups := map[string]quota.Group{}
	for _, g := range raised.groups {
		groups[g.Path()] = g
	}
	for _, c := range charged {
		g := groups[c.Path]
		if g == nil {
			g = raised.Nearest(c.Path)
		}
		g.Charge(c.Charge)
	}
	return raised, nil
}

// fieldMax and fieldMin are fields of a node.
const (
	fieldMax = "max"
	fieldMin = "min"
)

// Written returns the max, or the min, before and after a raise. With an oversell rate, it is the smallest max that is
// enough.
func (t *Tree) Written(r quota.Raise) (quota.Written, error) {
	if r.Node < 0 || int(r.Node) >= len(t.nodes) {
		return quota.Written{}, fmt.Errorf("the quota tree has no node %d", r.Node)
	}
	n, name := t.nodes[r.Node], t.names.Name(r.Resource)
	w := quota.Written{Quota: n.path, Field: fieldMax, Resource: name, To: r.To}
	written := nodeAt(&t.root, int(r.Node))
	list := written.Max
	if r.Bound == quota.FixedMin {
		c := n.cell(r.Resource)
		if c == nil {
			return quota.Written{}, fmt.Errorf("quota %s guarantees no %s", n.path, name)
		}
		w.Field, w.To, list = fieldMin, r.To+c.below, written.Min
	}
	if q, named := list[name]; named {
		value, err := resources.LimitValue(name, q)
		if err != nil {
			return quota.Written{}, fmt.Errorf("%s of quota %s: %w", w.Field, n.path, err)
		}
		w.From = value
	}
	if w.Field == fieldMax {
		to, reached := t.options.Oversell.Reaching(r.To)
		if !reached {
			return quota.Written{}, fmt.Errorf("no max of quota %s allows %d %s", n.path, r.To, name)
		}
		w.To = to
	}
	return w, nil
}

// nodeAt returns the node that has the number in tree order.
func nodeAt(n *Node, number int) *Node {
	if number == 0 {
		return n
	}
	number--
	for i := range n.Children {
		below := size(&n.Children[i])
		if number < below {
			return nodeAt(&n.Children[i], number)
		}
		number -= below
	}
	return nil
}

// withAmount returns a node, which has the number at in tree order, with another amount at the node with the wanted
// number. It changes nothing of the original.
func withAmount(n Node, at, wanted int, w quota.Written, to resource.Quantity) Node {
	if at == wanted {
		field := &n.Max
		if w.Field == fieldMin {
			field = &n.Min
		}
		list := maps.Clone(*field)
		if list == nil {
			list = map[string]resource.Quantity{}
		}
		list[w.Resource] = to
		*field = list
		return n
	}
	n.Children = slices.Clone(n.Children)
	first := at + 1
	for i := range n.Children {
		next := first + size(&n.Children[i])
		if first <= wanted && wanted < next {
			n.Children[i] = withAmount(n.Children[i], first, wanted, w, to)
		}
		first = next
	}
	return n
}

// size returns the number of nodes at and below a node.
func size(n *Node) int {
	all := 1
	for i := range n.Children {
		all += size(&n.Children[i])
	}
	return all
}
