package kueue

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// buildTree names the nodes, adds up their quotas and sorts them.
func (c *converter) buildTree() {
	names := nodeNames{}
	for _, q := range c.queues {
		c.nodes[q.Object.GetName()].name = names.name(q.Object.GetName())
	}
	c.rootName = names.name("root", "kueue")
	for _, name := range slices.Sorted(maps.Keys(c.cohorts)) {
		c.cohorts[name].name = names.name(name, name+"-cohort")
	}
	sortNodes(c.roots)
	for _, root := range c.roots {
		root.addUp()
		root.reachDown(nil)
	}
	c.listNamespaces()
	c.findLimits(c.roots)
}

func sortNodes(nodes []*node) {
	slices.SortFunc(nodes, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	for _, n := range nodes {
		sortNodes(n.children)
	}
}

// findLimits reports limits that have no effect in Kueue, or differ in kube-queue.
func (c *converter) findLimits(nodes []*node) {
	for _, n := range nodes {
		for _, p := range n.pairs() {
			q := n.own[p]
			field := fmt.Sprintf("spec.resourceGroups: flavor %s: %s", p.flavor, p.resource)
			if n.parent == nil {
				if q.borrow != nil || q.lend != nil {
					c.result.Find(n.object, field, "a limit of borrowing or lending has no effect without a cohort", "remove it")
				}
			} else if lent := n.subtree[p].Sub(n.local[p]); q.lend != nil && len(n.local) > 0 && n.local[p] != (resources.Sum{}) && !lendsExactly(n) {
				c.result.Find(n.object, field+": lendingLimit", fmt.Sprintf("the max of every other queue is lowered so that none alone borrows more than %s of it, but several of them together can borrow more",
					resources.Format(p.resource, lent.Clamp())), "nothing: what is lent comes back by reclaim; or lower the max of the others")
			}
		}
		c.findLimits(n.children)
	}
}

// lendsExactly reports whether the max of the only possible borrower expresses the lending limit of the node.
func lendsExactly(n *node) bool {
	if n.parent.parent != nil || len(n.parent.children) > 2 {
		return false
	}
	return !slices.ContainsFunc(n.parent.children, func(sibling *node) bool { return sibling.queue == nil })
}

// listNamespaces assigns the namespaces of the LocalQueues to the nodes of their ClusterQueues.
func (c *converter) listNamespaces() {
	for _, l := range c.locals {
		name, namespace, spec := l.Object.GetName(), l.Object.GetNamespace(), l.spec.Spec
		n := c.nodes[spec.ClusterQueue]
		switch {
		case namespace == "":
			c.faults.Add(l.Document, "the LocalQueue has no namespace; set metadata.namespace")
			continue
		case n == nil:
			c.result.Find(l.Name(), "spec.clusterQueue", fmt.Sprintf("the input has no ClusterQueue %q, so the namespace gets no quota from it", spec.ClusterQueue),
				"add the ClusterQueue to the input, or delete the LocalQueue")
			continue
		}
		c.localQueues[namespace+"/"+name] = n
		if !c.mayUse(l.Document, n, namespace) {
			continue
		}
		if c.listed[n] == nil {
			c.listed[n] = map[string][]string{}
		}
		c.listed[n][namespace] = append(c.listed[n][namespace], name)
		if spec.StopPolicy != "" && spec.StopPolicy != "None" {
			c.result.Find(l.Name(), "spec.stopPolicy", "a queue is stopped as a whole, with the jobs of all its namespaces",
				fmt.Sprintf("set the annotation %s: \"false\" on the jobs of the namespace, or stop the Queue of %s", wellknown.ActiveAnnotation, n.name))
		}
		if spec.FairSharing.hasWeight() {
			c.result.Find(l.Name(), "spec.fairSharing.weight", "jobs of one queue are ordered by priority and submission only, not by what their namespace has used",
				"give the namespace a quota node of its own")
		}
	}
}

// mayUse reports whether the namespaceSelector of the ClusterQueue matches the namespace. If the labels of the
// namespace are unknown, it returns true, and adds a step to check them by hand.
func (c *converter) mayUse(d migration.Document, n *node, namespace string) bool {
	written := n.queue.Spec.NamespaceSelector
	if written == nil {
		c.result.Find(d.Name(), "spec.clusterQueue", n.object+" has no namespaceSelector, so no namespace may use it", "list the namespace at the node "+n.name+" if it may")
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(written)
	if err != nil {
		c.faults.Add(d, "the namespaceSelector of %s: %v", n.object, err)
		return false
	}
	known, has := c.namespaces[namespace]
	if !has {
		known = map[string]string{"kubernetes.io/metadata.name": namespace}
		requirements, _ := selector.Requirements()
		if slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() != "kubernetes.io/metadata.name" }) {
			c.result.Step("Check that the labels of namespace %s match the namespaceSelector %q of %s; if not, remove the namespace from the node %s. Namespaces in the input are checked.",
				namespace, selector, n.object, n.name)
			return true
		}
	}
	if !selector.Matches(labels.Set(known)) {
		c.result.Find(d.Name(), "spec.clusterQueue", "the namespaceSelector of "+n.object+" does not match the namespace", "list the namespace at the node "+n.name+" if it may use it")
		return false
	}
	return true
}

func (c *converter) path(n *node) string {
	if n.parent == nil {
		return c.rootName + "/" + n.name
	}
	return c.path(n.parent) + "/" + n.name
}

// leaves returns the nodes of ClusterQueues, in tree order.
func leaves(nodes []*node) (found []*node) {
	for _, n := range nodes {
		if n.queue != nil {
			found = append(found, n)
		}
		found = append(found, leaves(n.children)...)
	}
	return found
}

// covered returns the resources for which any ClusterQueue has a quota.
func (c *converter) covered() map[string]bool {
	covered := map[string]bool{}
	for _, n := range leaves(c.roots) {
		for _, p := range n.pairs() {
			covered[p.resource] = true
		}
	}
	return covered
}

func (c *converter) tree() *unstructured.Unstructured {
	covered := c.covered()
	var children []any
	for _, n := range c.roots {
		children = append(children, c.quotaNode(n, covered))
	}
	root := map[string]any{"name": c.rootName, "children": children}
	return migration.Object(manifest.Version, manifest.Kind, manifest.Namespace, "elasticquotatree", map[string]any{"spec": map[string]any{"root": root}})
}

// quotaNode returns the quota node of a ClusterQueue or Cohort. A ClusterQueue without one of the
// covered resources admits no job that requests it.
func (c *converter) quotaNode(n *node, covered map[string]bool) map[string]any {
	written := map[string]any{"name": n.name}
	limit := map[string]any{}
	reach := n.perResource(func(p pair) resources.Sum { return n.reach[p] })
	for name, amount := range reach {
		limit[name] = c.amount(n, name, amount)
	}
	guarantee := map[string]any{}
	if n.queue != nil {
		for name := range covered {
			if _, has := reach[name]; !has {
				limit[name] = "0"
			}
		}
		for name, amount := range n.perResource(func(p pair) resources.Sum { return resources.Sum{}.Plus(n.own[p].nominal) }) {
			guarantee[name] = c.amount(n, name, amount)
		}
		if namespaces := slices.Sorted(maps.Keys(c.listed[n])); len(namespaces) > 0 {
			written["namespaces"] = anys(namespaces)
		}
	} else if c.ownsAny(n) {
		for name, amount := range n.perResource(n.total) {
			guarantee[name] = c.amount(n, name, amount)
		}
	}
	if len(limit) > 0 {
		written["max"] = limit
	}
	if len(guarantee) > 0 {
		written["min"] = guarantee
	}
	if n.parent == nil && n.queue == nil && !reclaims(n) {
		written["attributes"] = map[string]any{wellknown.ReclaimAttribute: wellknown.ReclaimNever}
	}
	var children []any
	for _, child := range n.children {
		children = append(children, c.quotaNode(child, covered))
	}
	if len(children) > 0 {
		written["children"] = children
	}
	return written
}

// ownsAny reports whether a Cohort has its own quota, which its children share.
func (c *converter) ownsAny(n *node) bool {
	for _, q := range n.own {
		if q.nominal > 0 {
			return true
		}
	}
	return false
}

// amount formats an amount. An amount that is too large for kube-queue is a fault.
func (c *converter) amount(n *node, resource string, amount resources.Sum) string {
	if amount.Exceeds(math.MaxInt64 - 1) {
		c.faults = append(c.faults, fmt.Sprintf("%s: the quotas of %s add up to more than the largest amount, %s; write smaller ones", n.object, resource, resources.Format(resource, math.MaxInt64)))
	}
	return resources.Format(resource, amount.Clamp())
}

// reclaims reports whether any ClusterQueue at or below the node can reclaim its quota from others by evicting jobs.
func reclaims(n *node) bool {
	return slices.ContainsFunc(leaves([]*node{n}), func(leaf *node) bool {
		policy := leaf.queue.Spec.Preemption.ReclaimWithinCohort
		return policy != "" && policy != "Never"
	})
}

func rootOf(n *node) *node {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

func anys[T any](list []T) []any {
	any := make([]any, len(list))
	for i, v := range list {
		any[i] = v
	}
	return any
}

// queueNames returns the names of the Queues of all leaves. The controller names only the Queues of groups, which list
// namespaces. A leaf without namespaces becomes a group when it lists one.
func (c *converter) queueNames() map[*node]string {
	var groups, others []*node
	var paths []string
	for _, n := range leaves(c.roots) {
		if len(c.listed[n]) > 0 {
			groups, paths = append(groups, n), append(paths, c.path(n))
		} else {
			others = append(others, n)
		}
	}
	for _, n := range others {
		paths = append(paths, c.path(n))
	}
	names := map[*node]string{}
	for i, name := range quota.QueueNames(paths) {
		names[slices.Concat(groups, others)[i]] = name
	}
	return names
}

// defaultQueue is the LocalQueue of jobs without the label of a queue.
const defaultQueue = "default"

// stepNamespaces reports namespaces that can use several queues, and queues that no namespace can use.
func (c *converter) stepNamespaces() {
	uses := map[string][]*node{}
	for _, n := range leaves(c.roots) {
		for namespace := range c.listed[n] {
			uses[namespace] = append(uses[namespace], n)
		}
		if len(c.listed[n]) == 0 {
			c.result.Step("No namespace can use %s: list the namespaces that may at the node %s of the tree.", n.object, n.name)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(uses)) {
		nodes := uses[namespace]
		if n := c.localQueues[namespace+"/"+defaultQueue]; n != nil && slices.Contains(nodes, n) {
			c.result.Step("Label namespace %s kube-queue/managed=true: it has a LocalQueue %q, so Kueue queues its jobs without a label, at the node %s.", namespace, defaultQueue, n.name)
		}
		if len(nodes) < 2 {
			continue
		}
		var choices []string
		for _, n := range nodes {
			choices = append(choices, fmt.Sprintf("%s for LocalQueue %s", n.name, strings.Join(c.listed[n][namespace], ", ")))
		}
		c.result.Step("Jobs of namespace %s choose a quota by the label %s: %s. Without the label they use %s.",
			namespace, wellknown.QuotaNameLabel, strings.Join(choices, ", "), nodes[0].name)
	}
}

// isChoice reports whether the namespace can also use another node. Jobs of n then need a label.
func (c *converter) isChoice(n *node, namespace string) bool {
	for other, namespaces := range c.listed {
		if other != n && len(namespaces[namespace]) > 0 {
			return true
		}
	}
	return false
}
