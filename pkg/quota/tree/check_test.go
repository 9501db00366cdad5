package tree

import (
	"fmt"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Charged is what was charged to a group and not uncharged.
type Charged struct {
	Group quota.Group
	quota.Charge
}

// Of returns how much of a resource is charged: the greater of what was admitted and what pods request.
func (c Charged) Of(r resources.ID) int64 {
	admitted, _ := c.Demand.Requests.Get(r)
	requested, _ := c.Pods.Get(r)
	return max(admitted, requested)
}

// Check adds up the charges again and compares the sums with those of the tree. It fails if they differ at a node, for
// a resource, or if a group is not in this tree.
func (t *Tree) Check(charged []Charged) error {
	used, fixed := make([]map[resources.ID]resources.Sum, len(t.nodes)), make([]map[resources.ID]resources.Sum, len(t.nodes))
	for i := range used {
		used[i], fixed[i] = map[resources.ID]resources.Sum{}, map[resources.ID]resources.Sum{}
	}
	all := resources.ID(t.names.Len())
	for _, c := range charged {
		g, ok := c.Group.(*group)
		if !ok || g.tree != t {
			return fmt.Errorf("something is charged to group %s of another tree", c.Group.Path())
		}
		for i, id := range g.ids {
			for r := range all {
				used[id][r] = used[id][r].Plus(c.Of(r))
				if i == 0 && !c.Demand.Preemptible && g.queue != "" {
					fixed[id][r] = fixed[id][r].Plus(c.Of(r))
				}
			}
		}
	}
	for i, n := range t.nodes {
		for r := range all {
			if counted, want := n.used(r), used[i][r]; counted != want {
				name := t.names.Name(r)
				return fmt.Errorf("quota %s: %s of %s is counted as used, but the sum of what is charged is %s",
					n.path, resources.Format(name, counted.Clamp()), name, resources.Format(name, want.Clamp()))
			}
			var counted resources.Sum
			if c := n.cell(r); c != nil {
				counted = c.fixed
			}
			if want := fixed[i][r]; counted != want {
				name := t.names.Name(r)
				return fmt.Errorf("quota %s: %s of %s is counted as used by non-preemptible units, but the sum of what they are charged is %s",
					n.path, resources.Format(name, counted.Clamp()), name, resources.Format(name, want.Clamp()))
			}
		}
		for r, c := range n.others { // nothing is stored for unused resources
			if *c == (cell{}) {
				return fmt.Errorf("quota %s: the cell of %s is empty but is kept", n.path, t.names.Name(r))
			}
		}
	}
	return nil
}
