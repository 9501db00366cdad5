package tree

import (
	"fmt"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Charged is what was charged to a group and not released.
type Charged struct {
	Group quota.Group
	quota.Charge
}

// Of is what is charged of a resource: the greater of what was admitted and what pods request.
func (c Charged) Of(r resources.ID) int64 {
	admitted, _ := c.Demand.Requests.Get(r)
	requested, _ := c.Pods.Get(r)
	return max(admitted, requested)
}

// Check adds up the charges again and compares with what the tree has counted. It
// fails when they differ at a node, for a resource, or when a group is not this
// tree's.
func (t *Tree) Check(charged []Charged) error {
	fresh := make([]node, len(t.nodes))
	for i, n := range t.nodes {
		fresh[i].columns = n.columns
	}
	all := resources.ID(t.names.Len())
	for _, c := range charged {
		g, ok := c.Group.(*group)
		if !ok || g.tree != t {
			return fmt.Errorf("something is charged to group %s of another tree", c.Group.Path())
		}
		for i, id := range g.ids {
			for r := range all {
				if of := c.Of(r); of > 0 {
					fresh[id].charge(resources.Vector{{ID: r, Value: of}}, g.fixes(i, c.Demand), c.Unqueued)
				}
			}
		}
	}
	for i, n := range t.nodes {
		for r := range all {
			if counted, want := n.used(r), fresh[i].used(r); counted != want {
				name := t.names.Name(r)
				return fmt.Errorf("quota %s: %s of %s is counted as used, but the sum of what is charged is %s",
					n.path, resources.Format(name, counted.Clamp()), name, resources.Format(name, want.Clamp()))
			}
			if counted, want := n.fixed(r), fresh[i].fixed(r); counted != want {
				name := t.names.Name(r)
				return fmt.Errorf("quota %s: %s of %s is counted as used by non-preemptible units, but the sum of what they are charged is %s",
					n.path, resources.Format(name, counted.Clamp()), name, resources.Format(name, want.Clamp()))
			}
		}
		for r, c := range n.others { // nothing is stored of what nobody uses
			if *c == (cell{}) {
				return fmt.Errorf("quota %s: the cell of %s is empty but is kept", n.path, t.names.Name(r))
			}
		}
	}
	return nil
}
