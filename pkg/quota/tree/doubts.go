package tree

import (
	"fmt"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// Cluster is what is known about the cluster of a tree. It is used only for warnings. A nil function means that nothing
// is known, so there is no warning.
type Cluster struct {
	// HasResource returns whether a node of the cluster has the resource, or something uses it.
	HasResource func(name string) bool
	// HasNamespace returns whether the namespace exists.
	HasNamespace func(name string) bool
}

// Warnings returns, in tree order, what is allowed in the tree but rarely intended.
func Warnings(root Node, cluster Cluster) (warnings []string) {
	for _, n := range check(root, cluster) {
		warnings = append(warnings, n.warnings...)
	}
	return warnings
}

// FormerAttributes are the attributes of ack-kube-queue that have no effect here, with what to do instead.
var FormerAttributes = map[string]string{
	"alibabacloud.com/lendlimit": "nothing: the complete min is lent and comes back by reclaim; or lower the max of those who must not borrow it",
	"preempt-policy":             "set spec.preemption.withinQueue: LowerPriority of the Queue",
	"resourceflavors":            "let jobs select their nodes; for GPUs of different types, give each type a quota with the value devices.types of the chart",
}

// commonResources are the resources whose misspelled names cause a warning. A limit on a resource that is never
// requested has no effect, and the intended resource stays unlimited.
var commonResources = []string{"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi",
	"google.com/tpu", quota.JobsResource}

// otherResources are existing names that resemble another one.
var otherResources = []string{"gpu", "tpu", "npu", "vgpu", "nvidia.com/vgpu", "amd.com/vgpu"}

// meantResource returns the common resource whose name was probably misspelled; empty if none was. In a name with a
// domain, only one of the two parts can be wrong.
func meantResource(name string) string {
	if slices.Contains(otherResources, name) {
		return ""
	}
	domain, short, qualified := strings.Cut(name, "/")
	if strings.HasSuffix(quota.JobsResource, "/"+name) { // its prefix is easy to forget
		return quota.JobsResource
	}
	for _, common := range commonResources {
		commonDomain, commonShort, commonQualified := strings.Cut(common, "/")
		switch {
		case qualified != commonQualified, name == common:
		case !qualified && spelling.Nearest(name, []string{common}) != "",
			qualified && short == commonShort && spelling.Nearest(domain, []string{commonDomain}) != "",
			qualified && short == commonShort && strings.HasPrefix(commonDomain, domain+"."),
			qualified && domain == commonDomain && spelling.Nearest(short, []string{commonShort}) != "":
			return common
		}
	}
	return ""
}

// countNames counts how many nodes name each resource.
func (c *checker) countNames(n *Node, depth int) {
	for name := range n.Min {
		c.naming[name]++
	}
	for name := range n.Max {
		if _, counted := n.Min[name]; !counted {
			c.naming[name]++
		}
	}
	if depth < maxDepth {
		for i := range n.Children {
			c.countNames(&n.Children[i], depth+1)
		}
	}
}

// doubt returns why an entry of the resource probably has no effect; empty if there is no doubt. A resource that
// several nodes name is assumed to be correct, unless it resembles a common one.
func (c *checker) doubt(name string) string {
	meant, has := meantResource(name), c.cluster.HasResource
	switch {
	case slices.Contains(commonResources, name), meant == "" && c.naming[name] > 1:
		return ""
	case has != nil && has(name):
		return ""
	case meant != "":
		return fmt.Sprintf("no known resource is called %q, so the entry probably has no effect; did you mean %q?", name, meant)
	case has == nil:
		return ""
	}
	return fmt.Sprintf("no node of the cluster has resource %q, and no other node of the tree names it, so the entry probably has no effect%s",
		name, c.hint(name))
}

// hint says what to do about a resource that is not known elsewhere. It names a similar resource of another node, if
// there is one.
func (c *checker) hint(name string) string {
	domain, short, _ := strings.Cut(name, "/")
	for _, other := range sortedKeys(c.naming) {
		otherDomain, otherShort, _ := strings.Cut(other, "/")
		if domain == otherDomain && spelling.Nearest(short, []string{otherShort}) != "" || short == otherShort && spelling.Nearest(domain, []string{otherDomain}) != "" {
			return fmt.Sprintf("; did you mean %q, as in another node?", other)
		}
	}
	return "; correct the name, or keep it if nodes with it are still to come"
}

// maxAbsent is how many missing namespaces a warning names.
const maxAbsent = 10

// warnOfAbsent warns about namespaces of the node that do not exist.
func (n *checkedNode) warnOfAbsent() {
	if len(n.absent) == 0 {
		return
	}
	quoted := make([]string, 0, maxAbsent)
	for _, namespace := range n.absent[:min(len(n.absent), maxAbsent)] {
		quoted = append(quoted, fmt.Sprintf("%q", namespace))
	}
	names := strings.Join(quoted, ", ")
	if more := len(n.absent) - maxAbsent; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if len(n.absent) == 1 {
		n.warn("namespace %s does not exist; create it, or correct or remove the entry", names)
		return
	}
	n.warn("namespaces %s do not exist; create them, or correct or remove the entries", names)
}
