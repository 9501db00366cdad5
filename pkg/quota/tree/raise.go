package tree

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Raised returns a copy of the tree with higher limits and the same charges.
func (t *Tree) Raised(names *resources.Names, raises []quota.Raise) (quota.Explainer, error) {
	changes, err := t.changes(raises)
	if err != nil {
		return nil, err
	}
	root, simple := t.root, true
	for _, c := range changes {
		name := t.names.Name(c.resource)
		root = withAmount(root, 0, c.node, c.field, name, resources.Quantity(name, c.to))
		simple = simple && t.isSimple(c)
	}
	if !simple {
		raised, _, err := New(names, root, t.options)
		if err != nil {
			return nil, err
		}
		raised.chargeAs(t)
		return raised, nil
	}
	raised := t.copied(names)
	raised.root = root
	for _, c := range changes {
		n := raised.nodes[c.node]
		n.cell(c.resource).limit.value = t.options.Oversell.Floor(c.to)
		n.limited = n.limitedBy()
	}
	raised.forgetPlans()
	return raised, nil
}

// isSimple reports whether only a limit changes: the guarantees of the node's children are within its old max.
func (t *Tree) isSimple(c change) bool {
	cell := t.nodes[c.node].cell(c.resource)
	return c.field == fieldMax && c.named && cell != nil && cell.limit.named && cell.below <= c.from
}

// forgetPlans removes everything reserved or planned.
func (t *Tree) forgetPlans() {
	*t.plan = plan{}
	for _, n := range t.nodes {
		for i := range n.cells {
			n.cells[i].reserved, n.cells[i].planned = resources.Sum{}, nil
		}
		for _, id := range slices.Collect(maps.Keys(n.others)) {
			n.others[id].reserved, n.others[id].planned = resources.Sum{}, nil
			n.clean(id)
		}
	}
}

// chargeAs charges what is charged to another tree with the same nodes. The tree must not have charges yet.
func (t *Tree) chargeAs(other *Tree) {
	for i, n := range other.nodes {
		n.each(func(id resources.ID, c *cell) {
			to := t.nodes[i].at(id)
			to.used, to.own, to.fixed, to.unqueued = c.used, c.own, c.fixed, c.unqueued
			t.nodes[i].clean(id)
		})
	}
	// This depends on the guarantees. Children come before their parents.
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := t.nodes[i]
		n.each(func(id resources.ID, c *cell) {
			if id != t.jobs && !c.min.named {
				c.aside = c.aside.Add(c.fixed)
			}
			if n.inner && c.isOwnAbove() {
				c.borrowers++
			}
			if t.above[i] < 0 {
				return
			}
			above := t.nodes[t.above[i]].at(id)
			above.aside = above.aside.Add(c.aside)
			above.borrowers += c.borrowers + more(false, c.isAbove())
			t.nodes[t.above[i]].clean(id)
		})
	}
}

// change is a change of one amount of a node, in base units as an administrator writes it.
type change struct {
	node     int
	field    string
	resource resources.ID
	from, to int64
	// named is whether the field already names the resource.
	named bool
}

// Written returns the max, or the min, before and after the raises. With an oversell rate, it is the smallest
// sufficient max. A max is also raised if it would be below a raised min.
func (t *Tree) Written(raises []quota.Raise) ([]quota.Written, error) {
	changes, err := t.changes(raises)
	if err != nil {
		return nil, err
	}
	written := make([]quota.Written, len(changes))
	for i, c := range changes {
		written[i] = quota.Written{Quota: t.nodes[c.node].path, Field: c.field, Resource: t.names.Name(c.resource), From: c.from, To: c.to}
	}
	return written, nil
}

// changes returns what to write for the raises, at most one change of each amount.
func (t *Tree) changes(raises []quota.Raise) (changes []change, err error) {
	for _, r := range raises {
		if r.Node < 0 || int(r.Node) >= len(t.nodes) {
			return nil, fmt.Errorf("the quota tree has no node %d", r.Node)
		}
		var c cell
		if in := t.nodes[r.Node].cell(r.Resource); in != nil {
			c = *in
		}
		if r.Bound != quota.FixedMin && !c.limit.named {
			return nil, fmt.Errorf("quota %s does not limit %s", t.nodes[r.Node].path, t.names.Name(r.Resource))
		}
		switch r.Bound {
		case quota.FixedMin:
			changes, err = t.change(changes, int(r.Node), fieldMin, r.Resource, resources.AddTimes(c.ownMin()+c.below, r.By, 1))
			if err == nil {
				changes, err = t.changeMaxOf(changes, int(r.Node), r.Resource)
			}
		case quota.FixedMax:
			changes, err = t.changeLimit(changes, int(r.Node), r.Resource, resources.AddTimes(c.freeMax()+c.below, r.By, 1))
		default:
			changes, err = t.changeLimit(changes, int(r.Node), r.Resource, resources.AddTimes(c.limit.value, r.By, 1))
		}
		if err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// changeLimit makes the limit of a node, which includes the oversell rate, at least an amount.
func (t *Tree) changeLimit(changes []change, node int, id resources.ID, limit int64) ([]change, error) {
	to, reached := t.options.Oversell.Reaching(limit)
	if !reached || to == math.MaxInt64 {
		return nil, fmt.Errorf("no max of quota %s allows %d %s", t.nodes[node].path, limit, t.names.Name(id))
	}
	return t.change(changes, node, fieldMax, id, to)
}

// changeMaxOf makes the max of a node at least its min, and the max of its parent at least the sum of the min of its
// children.
func (t *Tree) changeMaxOf(changes []change, node int, id resources.ID) (_ []change, err error) {
	atLeast := func(node int, amount int64) error {
		limit, named, err := t.amount(changes, node, fieldMax, id)
		if err == nil && named && limit < amount {
			changes, err = t.change(changes, node, fieldMax, id, amount)
		}
		return err
	}
	own, _, err := t.amount(changes, node, fieldMin, id)
	if err == nil {
		err = atLeast(node, own)
	}
	if above := t.above[node]; err == nil && above >= 0 {
		var sum resources.Sum
		for child, parent := range t.above {
			if parent != above {
				continue
			}
			guaranteed, _, err := t.amount(changes, child, fieldMin, id)
			if err != nil {
				return nil, err
			}
			sum = sum.Plus(guaranteed)
		}
		err = atLeast(above, sum.Clamp())
	}
	return changes, err
}

// amount returns an amount of a node as written, after the changes, and whether it is written at all.
func (t *Tree) amount(changes []change, node int, field string, id resources.ID) (amount int64, named bool, err error) {
	for _, c := range changes {
		if c.node == node && c.field == field && c.resource == id {
			return c.to, true, nil
		}
	}
	written, name := nodeAt(&t.root, node), t.names.Name(id)
	list := written.Max
	if field == fieldMin {
		list = written.Min
	}
	q, named := list[name]
	if !named {
		return 0, false, nil
	}
	if amount, err = resources.LimitValue(name, q); err != nil {
		return 0, false, fmt.Errorf("%s of quota %s: %w", field, t.nodes[node].path, err)
	}
	return amount, true, nil
}

// change makes an amount at least to.
func (t *Tree) change(changes []change, node int, field string, id resources.ID, to int64) ([]change, error) {
	for i := range changes {
		if c := &changes[i]; c.node == node && c.field == field && c.resource == id {
			c.to = max(c.to, to)
			return changes, nil
		}
	}
	from, named, err := t.amount(nil, node, field, id)
	if err != nil {
		return nil, err
	}
	return append(changes, change{node: node, field: field, resource: id, from: from, to: max(from, to), named: named}), nil
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

// withAmount returns a copy of the node with number at in tree order, and changes an amount of the node with number
// wanted, at or below it.
func withAmount(n Node, at, wanted int, field, name string, to resource.Quantity) Node {
	if at == wanted {
		of := &n.Max
		if field == fieldMin {
			of = &n.Min
		}
		list := maps.Clone(*of)
		if list == nil {
			list = map[string]resource.Quantity{}
		}
		list[name] = to
		*of = list
		return n
	}
	n.Children = slices.Clone(n.Children)
	first := at + 1
	for i := range n.Children {
		next := first + size(&n.Children[i])
		if first <= wanted && wanted < next {
			n.Children[i] = withAmount(n.Children[i], first, wanted, field, name, to)
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
