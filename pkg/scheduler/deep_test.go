package scheduler_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// drawDeep draws a tree of up to five levels. The namespaces a to f may be listed at any node, at several or at none,
// and there may be a "*".
func drawDeep(t *rapid.T) tree.Node {
	nodes := 0
	root := leaf("root", drawAmounts(t, 6, 14))
	for range rapid.IntRange(1, 3).Draw(t, "branches") {
		root.Children = append(root.Children, drawBelow(t, 1, &nodes))
	}
	// Guarantees may exceed the capacity. Those of inner nodes are dropped first.
	for _, fix := range []func(*tree.Node){keepMinOfLeaves, dropMin} {
		if _, _, err := tree.New(resources.NewNames(), root, tree.Options{}); err != nil {
			everyNode(&root, fix)
		}
	}
	return root
}

func drawBelow(t *rapid.T, depth int, nodes *int) tree.Node {
	*nodes++
	n := leaf(fmt.Sprintf("n%d", *nodes), nil)
	if rapid.IntRange(0, 3).Draw(t, "another name") == 0 {
		n.Name = "other-" + n.Name
	}
	if depth < 4 && *nodes < 10 {
		for range rapid.IntRange(0, 3).Draw(t, "children") {
			n.Children = append(n.Children, drawBelow(t, depth+1, nodes))
		}
	}
	if n.Children == nil || rapid.IntRange(0, 3).Draw(t, "inner group") == 0 {
		n.Namespaces = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "*"}), 1, 2, rapid.ID[string]).Draw(t, "namespaces")
	}
	if rapid.IntRange(0, 2).Draw(t, "has min") > 0 {
		n.Min = quantities(drawAmounts(t, 0, 5-depth))
	}
	if rapid.IntRange(0, 2).Draw(t, "has max") == 0 {
		n.Max = quantities(drawAmounts(t, 2, 12-2*depth))
	}
	return n
}

func drawAmounts(t *rapid.T, least, most int) map[string]string {
	list := map[string]string{}
	for _, name := range []string{"cpu", "gpu", quota.JobsResource} {
		odds := 3
		if name == quota.JobsResource {
			odds = 1
		}
		if rapid.IntRange(0, 3).Draw(t, "names "+name) < odds {
			list[name] = fmt.Sprint(rapid.IntRange(least, most).Draw(t, name))
		}
	}
	return list
}

func everyNode(n *tree.Node, do func(*tree.Node)) {
	do(n)
	for i := range n.Children {
		everyNode(&n.Children[i], do)
	}
}

func keepMinOfLeaves(n *tree.Node) {
	if n.Children != nil {
		n.Min = nil
	}
	kept := map[string]resource.Quantity{}
	for name, q := range n.Min {
		if limit, named := n.Max[name]; named && q.Cmp(limit) > 0 {
			q = limit
		}
		kept[name] = q
	}
	n.Min = kept
}

func dropMin(n *tree.Node) { n.Min = nil }
