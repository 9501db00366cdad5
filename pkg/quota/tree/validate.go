package tree

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// maxDepth is the maximum number of nodes from the root to a leaf. It bounds the cost of a mistaken tree, and is larger
// than any useful depth.
const maxDepth = 100

// InvalidError reports why a tree is invalid.
type InvalidError struct {
	// Faults has at least one fault. Each names a node by its path. They are in tree order.
	Faults []string
}

// Error returns all faults in one text.
func (e *InvalidError) Error() string {
	return "invalid quota tree: " + strings.Join(e.Faults, "; ")
}

// checkedNode is a node as written, with its parsed quantities and namespaces.
type checkedNode struct {
	*Node
	path string
	// parent is the index of the node above, -1 for the root.
	parent int
	// min and max are in base units, without oversell.
	min, max map[string]int64
	// guarantee is what is guaranteed to the node: the greater of its min and the sum of its children's guarantees,
	// at most its max. A min of JobsResource guarantees nothing.
	guarantee map[string]int64
	// namespaces has no duplicates and only valid names or everyOther.
	namespaces []string
	children   []*checkedNode
	// absent are the namespaces that do not exist in the cluster.
	absent []string

	faults, warnings []string
}

func (n *checkedNode) fault(format string, args ...any) {
	n.faults = append(n.faults, n.path+": "+fmt.Sprintf(format, args...))
}

func (n *checkedNode) warn(format string, args ...any) {
	n.warnings = append(n.warnings, n.path+": "+fmt.Sprintf(format, args...))
}

// checker checks a tree. The faults are stored in the nodes.
type checker struct {
	cluster Cluster
	// naming is how many nodes have each resource in their min or max.
	naming map[string]int
	nodes  []*checkedNode
	// The following are from nodes that were visited before: the path of a name, the name of a path, and the path of
	// the first node that lists a namespace.
	byName, byPath, listedBy map[string]string
}

// check checks the tree and returns its nodes in tree order.
func check(root Node, cluster Cluster) []*checkedNode {
	c := &checker{cluster: cluster, naming: map[string]int{}, byName: map[string]string{}, byPath: map[string]string{}, listedBy: map[string]string{}}
	c.countNames(&root, 1)
	c.visit(&root, "", 0, -1, 1)
	for i := len(c.nodes) - 1; i >= 0; i-- { // children before their parents
		c.nodes[i].guaranteeAll()
	}
	for _, n := range c.nodes {
		n.compare()
	}
	return c.nodes
}

// RootField is the path of a root without a name, in messages.
const RootField = "spec.root"

// visit checks a node and its descendants. A node without a name is identified by its index among its
// siblings.
func (c *checker) visit(written *Node, above string, place, parent, depth int) *checkedNode {
	n := &checkedNode{Node: written, path: written.Name, parent: parent}
	if strings.TrimSpace(written.Name) == "" {
		n.path = "[" + strconv.Itoa(place) + "]"
		if parent < 0 {
			n.path = RootField
		}
	}
	if parent >= 0 {
		n.path = above + "/" + n.path
	}
	index := len(c.nodes)
	c.nodes = append(c.nodes, n)

	c.checkName(n)
	for _, fault := range written.Faults {
		n.fault("%s", fault)
	}
	for _, warning := range written.Warnings {
		n.warn("%s", warning)
	}
	for _, key := range sortedKeys(written.Attributes) {
		if instead := FormerAttributes[key]; instead != "" {
			n.warn("attribute %s has no effect; instead: %s", key, instead)
		}
	}
	n.min = c.amounts(n, "min", written.Min)
	n.max = c.amounts(n, "max", written.Max)
	c.checkNamespaces(n)
	if depth == maxDepth && len(written.Children) > 0 {
		n.fault("the tree has more than %d levels; remove the levels below this node", maxDepth)
		return n
	}
	for i := range written.Children {
		n.children = append(n.children, c.visit(&written.Children[i], n.path, i, index, depth+1))
	}
	return n
}

func (c *checker) checkName(n *checkedNode) {
	if strings.TrimSpace(n.Name) == "" {
		n.fault("the node has no name; set one")
		return
	}
	if other, used := c.byName[n.Name]; used && other == n.path {
		n.fault("more than one child of %s has the name %q; give every node a unique name, or merge the nodes", parentOf(n.path, n.Name), n.Name)
	} else if used {
		n.fault("more than one node has the name %q (the first is %s); give every node a unique name", n.Name, other)
	} else if other, used := c.byPath[n.path]; used {
		n.fault("the path is also that of node %q; remove the / from the names", other)
	}
	c.byName[n.Name] = n.path
	c.byPath[n.path] = n.Name
}

// parentOf returns the path of the parent of the node with the path and name.
func parentOf(path, name string) string { return strings.TrimSuffix(path, "/"+name) }

// amounts returns the quantities in base units. Quantities that cannot be read become faults.
func (c *checker) amounts(n *checkedNode, field string, list map[string]resource.Quantity) map[string]int64 {
	amounts := make(map[string]int64, len(list))
	for _, name := range sortedKeys(list) {
		if doubt := c.doubt(name); doubt != "" {
			n.warn("%s: %s", field, doubt)
		}
		value, err := resources.LimitValue(name, list[name])
		if err != nil {
			n.fault("%s: %v", field, err)
			continue
		}
		amounts[name] = value
	}
	return amounts
}

// checkNamespaces collects the valid namespaces of the node.
func (c *checker) checkNamespaces(n *checkedNode) {
	seen := make(map[string]bool, len(n.Namespaces))
	for _, namespace := range n.Namespaces {
		switch {
		case namespace == "":
			n.warn("an empty namespace is ignored; remove it")
		case namespace != everyOther && len(content.IsDNS1123Label(namespace)) > 0:
			n.warn("%q is ignored because it is not a valid namespace name; correct or remove it", namespace)
		case seen[namespace]:
			n.warn("namespace %q is listed twice; remove one entry", namespace)
		default:
			n.namespaces = append(n.namespaces, namespace)
			if namespace != everyOther && c.cluster.HasNamespace != nil && !c.cluster.HasNamespace(namespace) {
				n.absent = append(n.absent, namespace)
			}
			if first, listed := c.listedBy[namespace]; listed {
				n.warn("namespace %q is also listed by %s, which gets all jobs of the namespace that do not select this node with the label %s", namespace, first, wellknown.QuotaNameLabel)
			} else {
				c.listedBy[namespace] = n.path
			}
		}
		seen[namespace] = true
	}
	n.warnOfAbsent()
}

// compare compares the max of a node with its min and with its children, for each resource in the max. A child whose
// max lacks the resource counts as 0, because the max of the node bounds it.
func (n *checkedNode) compare() {
	for _, name := range sortedKeys(n.max) {
		limit := n.max[name]
		format := func(v int64) string { return resources.Format(name, v) }
		if n.min[name] > limit {
			n.fault("min %s %s is above max %s; lower the min or raise the max", name, format(n.min[name]), format(limit))
		}
		var mins resources.Sum
		for _, child := range n.children {
			mins = mins.Plus(child.min[name])
			if child.max[name] > limit {
				child.warn("max %s %s is above max %s of %s, so it can never be reached; lower it", name, format(child.max[name]), format(limit), n.path)
			}
		}
		if mins.Below(limit) < 0 {
			n.fault("the sum of the children's min %s, %s (%s), is above max %s of this node; lower them or raise the max", name, format(mins.Clamp()), n.minsOf(name), format(limit))
		} else if below := n.guaranteedBelow(name); below.Below(limit) < 0 {
			n.warn("%s %s is guaranteed below this node, which is above max %s, so not all of it can be guaranteed at the same time; lower the min of nodes below it or raise the max", format(below.Clamp()), name, format(limit))
		}
	}
}

// minsOf lists the min of at most 10 children that have one, for a message.
func (n *checkedNode) minsOf(name string) string {
	const most = 10
	var mins []string
	for _, child := range n.children {
		if value, named := child.min[name]; named {
			mins = append(mins, child.Name+" "+resources.Format(name, value))
		}
	}
	if more := len(mins) - most; more > 0 {
		mins = append(mins[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(mins, ", ")
}

// guaranteeAll sets the guarantee of a node. Those of its children must be set before.
func (n *checkedNode) guaranteeAll() {
	n.guarantee = make(map[string]int64, len(n.min))
	for name, value := range n.min {
		n.guarantee[name] = value
	}
	below := map[string]resources.Sum{}
	for _, child := range n.children {
		for name, value := range child.guarantee {
			below[name] = below[name].Plus(value)
		}
	}
	for name := range below {
		sum := below[name].Clamp()
		if limit, limited := n.max[name]; limited {
			sum = min(sum, limit)
		}
		n.guarantee[name] = max(n.min[name], sum)
	}
	delete(n.guarantee, quota.JobsResource)
}

// guaranteedBelow returns the sum of the guarantees of the children.
func (n *checkedNode) guaranteedBelow(name string) (sum resources.Sum) {
	for _, child := range n.children {
		sum = sum.Plus(child.guarantee[name])
	}
	return sum
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
