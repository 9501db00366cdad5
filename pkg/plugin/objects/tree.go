package objects

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

// Tree returns the nodes of a tree from the spec and status of the ElasticQuotaTree, parents first. The object does
// not show what is lent or how many units wait. problem says why the spec is not in force; empty if it is.
func Tree(object *unstructured.Unstructured) (quotas []visibility.QuotaSummary, problem string) {
	status := manifest.Status(object)
	for _, condition := range status.Conditions {
		if condition.Type == wellknown.ConditionValid && condition.Status != "True" {
			problem = condition.Message
		}
	}
	used := map[string]*quotav1beta1.ElasticQuotaNodeStatus{}
	for i := range status.Nodes {
		used[status.Nodes[i].Path] = &status.Nodes[i]
	}
	root := manifest.Root(object)
	var groups []string
	walk(root, "", func(path string, node *tree.Node) {
		if len(node.Namespaces) > 0 {
			groups = append(groups, path)
		}
	})
	queues := map[string]string{}
	for i, name := range quota.QueueNames(groups) {
		queues[groups[i]] = name
	}
	walk(root, "", func(path string, node *tree.Node) {
		summary := visibility.QuotaSummary{Path: path, Queue: queues[path], Min: list(node.Min), Max: list(node.Max)}
		if n := used[path]; n != nil {
			summary.Used, summary.Borrowed, summary.Unqueued = maps.Clone(n.Used), n.Borrowed, n.Unqueued
			if summary.Used == nil {
				summary.Used = corev1.ResourceList{}
			}
			summary.Used[wellknown.MaxJobsResource] = *resource.NewQuantity(int64(n.Jobs), resource.DecimalSI)
			summary.Holding = n.Jobs
			summary.Requested = difference(n.Request, n.Used)
		}
		quotas = append(quotas, summary)
	})
	return quotas, problem
}

func walk(node tree.Node, above string, visit func(path string, node *tree.Node)) {
	path := node.Name
	if above != "" {
		path = above + "/" + node.Name
	}
	visit(path, &node)
	for _, child := range node.Children {
		walk(child, path, visit)
	}
}

func list(amounts map[string]resource.Quantity) corev1.ResourceList {
	if amounts == nil {
		return nil
	}
	converted := corev1.ResourceList{}
	for name, q := range amounts {
		converted[corev1.ResourceName(name)] = q
	}
	return converted
}

// difference returns the positive amounts of a - b.
func difference(a, b corev1.ResourceList) corev1.ResourceList {
	rest := corev1.ResourceList{}
	for name, q := range a {
		left := q.DeepCopy()
		left.Sub(b[name])
		if left.Sign() > 0 {
			rest[name] = left
		}
	}
	return rest
}

// Below returns the quotas at and below the path; nil if there is none.
func Below(quotas []visibility.QuotaSummary, path string) []visibility.QuotaSummary {
	var found []visibility.QuotaSummary
	for _, q := range quotas {
		if within(q.Path, path) {
			found = append(found, q)
		}
	}
	return found
}
