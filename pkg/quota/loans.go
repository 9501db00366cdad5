package quota

import (
	"strings"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Loans are what the children of each node have borrowed, by the path of the node.
type Loans map[string]map[resources.ID]int64

// NewLoans returns the loans between nodes, which must be all nodes.
func NewLoans(nodes []NodeUsage) Loans {
	below := Loans{}
	for i := range nodes {
		n := &nodes[i]
		above, is := parent(n.Path)
		if !is {
			continue
		}
		if below[above] == nil {
			below[above] = map[resources.ID]int64{}
		}
		for _, a := range n.Used { // without a guarantee, everything used is borrowed
			min, named := n.Min.Get(a.ID)
			if over := a.Value - min; over > 0 || !named {
				below[above][a.ID] = resources.AddTimes(below[above][a.ID], max(over, 0), 1)
			}
		}
	}
	return below
}

// Lent returns how much of a node's guarantee others use: the part that the node does not use and its siblings have
// borrowed.
func (l Loans) Lent(n *NodeUsage) (lent resources.Vector) {
	above, is := parent(n.Path)
	if !is {
		return nil
	}
	for _, a := range n.Min {
		used, _ := n.Used.Get(a.ID)
		if idle := min(a.Value-used, l[above][a.ID]); idle > 0 {
			lent = append(lent, resources.Amount{ID: a.ID, Value: idle})
		}
	}
	return lent
}

// parent returns the path of the parent of a node, or false if it has none.
func parent(path string) (string, bool) {
	cut := strings.LastIndexByte(path, '/')
	return path[:max(cut, 0)], cut >= 0
}
