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
	"kube-queue.dev/kube-queue/pkg/resources"
)

// maxDepth is the greatest number of nodes from the root to a leaf. It bounds
// what a mistaken tree can cost, not what is useful.
const maxDepth = 100

// InvalidError says why a tree cannot be in force.
type InvalidError struct {
	// Faults, at least one, each a sentence that names a node by its path. They
	// are in tree order.
	Faults []string
}

// Error lists all faults.
func (e *InvalidError) Error() string {
	return "invalid quota tree: " + strings.Join(e.Faults, "; ")
}

// checkedNode is a node as written, with what its quantities and namespaces say.
type checkedNode struct {
	*Node
	path string
	// parent is the index of the node above, -1 for the root.
	parent int
	// min and max in base units, without oversell.
	min, max map[string]int64
	// namespaces of which each stands once and can exist, or is everyOther.
	namespaces []string
	children   []*checkedNode

	faults, warnings []string
}

func (n *checkedNode) fault(format string, args ...any) {
	n.faults = append(n.faults, n.path+": "+fmt.Sprintf(format, args...))
}

func (n *checkedNode) warn(format string, args ...any) {
	n.warnings = append(n.warnings, n.path+": "+fmt.Sprintf(format, args...))
}

// checker goes through a tree; the nodes keep what is wrong with them.
type checker struct {
	nodes []*checkedNode
	// What was seen before: the path of a name, the name of a path, the path of
	// the first node that lists a namespace.
	byName, byPath, listedBy map[string]string
}

// check returns the nodes in tree order.
func check(root Node) []*checkedNode {
	c := &checker{byName: map[string]string{}, byPath: map[string]string{}, listedBy: map[string]string{}}
	c.visit(&root, "", 0, -1, 1)
	for _, n := range c.nodes {
		n.compare()
	}
	return c.nodes
}

// visit checks a node by itself and those below it. A node without a name goes
// by its place among its siblings.
func (c *checker) visit(written *Node, above string, place, parent, depth int) *checkedNode {
	n := &checkedNode{Node: written, path: written.Name, parent: parent}
	if strings.TrimSpace(written.Name) == "" {
		n.path = "[" + strconv.Itoa(place) + "]"
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
	n.min = n.amounts("min", written.Min)
	n.max = n.amounts("max", written.Max)
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
		n.fault("the node has no name; set name")
		return
	}
	if other, used := c.byName[n.Name]; used {
		n.fault("the name %q is also used by %s; give every node a unique name", n.Name, other)
	} else if other, used := c.byPath[n.path]; used {
		n.fault("the path is also that of node %q; remove the / from the names", other)
	}
	c.byName[n.Name] = n.path
	c.byPath[n.path] = n.Name
}

// amounts in base units of the quantities that can be read.
func (n *checkedNode) amounts(field string, list map[string]resource.Quantity) map[string]int64 {
	amounts := make(map[string]int64, len(list))
	for _, name := range sortedKeys(list) {
		value, err := resources.LimitValue(name, list[name])
		if err != nil {
			n.fault("%s: %v", field, err)
			continue
		}
		amounts[name] = value
	}
	return amounts
}

// checkNamespaces keeps of the node's namespaces those that mean something.
func (c *checker) checkNamespaces(n *checkedNode) {
	seen := make(map[string]bool, len(n.Namespaces))
	for _, namespace := range n.Namespaces {
		switch {
		case namespace == "":
			n.warn("an empty namespace is ignored")
		case namespace != everyOther && len(content.IsDNS1123Label(namespace)) > 0:
			n.warn("%q is ignored because it is not a valid namespace name", namespace)
		case seen[namespace]:
			n.warn("namespace %q is listed twice", namespace)
		default:
			n.namespaces = append(n.namespaces, namespace)
			if first, listed := c.listedBy[namespace]; listed {
				n.warn("namespace %q is also listed by %s, which gets all jobs of the namespace that do not select this node with the label %s", namespace, first, wellknown.QuotaNameLabel)
			} else {
				c.listedBy[namespace] = n.path
			}
		}
		seen[namespace] = true
	}
}

// compare a node's max with its min and with its children, for each resource that
// the max names. A child whose max does not name it counts as nothing: the node's
// own max bounds it.
func (n *checkedNode) compare() {
	for _, name := range sortedKeys(n.max) {
		limit := n.max[name]
		format := func(v int64) string { return resources.Format(name, v) }
		if n.min[name] > limit {
			n.fault("min %s %s is above max %s", name, format(n.min[name]), format(limit))
		}
		var mins, maxs resources.Sum
		above := false
		for _, child := range n.children {
			mins, maxs = mins.Plus(child.min[name]), maxs.Plus(child.max[name])
			if child.max[name] > limit {
				above = true
				child.warn("max %s %s is above max %s of %s", name, format(child.max[name]), format(limit), n.path)
			}
		}
		if mins.Below(limit) < 0 {
			n.fault("the sum of the children's min %s, %s, is above max %s", name, format(mins.Clamp()), format(limit))
		}
		if maxs.Below(limit) < 0 && !above {
			n.warn("the sum of the children's max %s, %s, is above max %s", name, format(maxs.Clamp()), format(limit))
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
