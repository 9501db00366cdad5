// Package ack converts the settings of ack-kube-queue and of its successor koord-queue into those of kube-queue:
// their Deployments into values of the chart, their Queues, ElasticQuotaTrees and ElasticQuotas, and the manifests of
// jobs.
//
// Terms. Both are called the former queue here. Its root is always called "root" in the paths and names of its
// Queues, no matter what the tree says.
package ack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

const queueGroup = "scheduling.x-k8s.io"

// Is reports whether the object belongs to the former queue, or is a job with one of its keys.
func Is(object *unstructured.Unstructured) bool {
	switch gvk := object.GroupVersionKind(); {
	case gvk.Group == manifest.Group, gvk.Group == queueGroup, isConfiguration(object):
		return true
	case gvk.Group == "apps" && gvk.Kind == "Deployment":
		return program(object.GetName()) != ""
	default:
		return isJob(object)
	}
}

// Convert converts the documents. It skips objects that do not belong to the former queue. The error is a
// *migration.InputError.
func Convert(documents []migration.Document) (*migration.Result, error) {
	c := &converter{result: &migration.Result{}, quotas: map[string]migration.Document{}, policies: map[string]string{}, unqueued: map[string]bool{}}
	for _, d := range migration.Sorted(documents) {
		switch gvk := d.Object.GroupVersionKind(); {
		case gvk.Group == manifest.Group && gvk.Kind == manifest.Kind:
			c.trees = append(c.trees, d)
		case gvk.Group == manifest.Group && gvk.Kind == "ElasticQuota":
			c.addQuota(d)
		case gvk.Group == queueGroup && gvk.Kind == "Queue":
			c.queues = append(c.queues, d)
		case gvk.Group == queueGroup && gvk.Kind == "QueueUnit":
			c.units++
		case gvk.Group == "apps" && gvk.Kind == "Deployment":
			c.readDeployment(d)
		case gvk.Kind == "ConfigMap" && gvk.Group == "", isConfiguration(d.Object):
			c.readConfiguration(d)
		case gvk.Kind == "Namespace" && gvk.Group == "":
			c.readNamespace(d)
		case isJob(d.Object), isSuspended(d.Object):
			c.jobs = append(c.jobs, d)
		case d.Object.GetUID() == "" && migration.HasKey(d.Object, isFormer):
			c.result.Find(d.Name(), "metadata", "the object has keys of the former queue, but its kind is not converted",
				"change the keys by hand; those of a CronJob are in spec.jobTemplate.metadata, and each of its Jobs is queued")
		}
	}
	if c.usesQuotas && len(c.quotas) == 0 {
		c.result.Step("Add the ElasticQuotas to the input: they become an ElasticQuotaTree.")
	}
	c.buildTree()
	c.convertQueues()
	if c.tree != nil {
		c.result.Objects = append(c.result.Objects, c.tree)
	}
	c.convertJobs()
	if c.units > 0 {
		c.result.Step("%d QueueUnits in the input are not converted: kube-queue creates one for each queued job. Delete them with the CustomResourceDefinition of the former queue.", c.units)
	}
	if err := c.faults.Error(); err != nil {
		return nil, err
	}
	c.result.SortFindings()
	return c.result, nil
}

type converter struct {
	result *migration.Result
	faults migration.Faults

	trees, queues, jobs []migration.Document
	// quotas are the ElasticQuotas by name.
	quotas map[string]migration.Document
	// policies are the policies that ElasticQuotas set for their queues.
	policies map[string]string
	// usesQuotas is true if the quota backend uses ElasticQuotas.
	usesQuotas bool
	units      int
	live       int
	// unqueued are the kinds of jobs that only their suspend field marks, although the values do not enable them.
	unqueued map[string]bool

	// tree is the tree to apply, and groups are its groups; nil without a tree.
	tree   *unstructured.Unstructured
	groups []group
	root   tree.Node
}

// group is a node that lists namespaces.
type group struct {
	path, queue string
	node        tree.Node
}

// buildTree takes over the ElasticQuotaTree, or makes one from ElasticQuotas.
func (c *converter) buildTree() {
	switch {
	case len(c.trees) > 0 && len(c.quotas) > 0:
		c.faults.Add(c.trees[0], "the input has ElasticQuotas, too; convert only those objects that are in use")
		return
	case len(c.trees) > 0:
		c.takeTree()
	case len(c.quotas) > 0:
		c.treeOfQuotas()
	}
	if c.tree == nil {
		return
	}
	c.root = manifest.Root(c.tree)
	c.collect(c.root, c.root.Name)
	paths := make([]string, len(c.groups))
	for i, g := range c.groups {
		paths[i] = g.path
	}
	for i, name := range quota.QueueNames(paths) {
		c.groups[i].queue = name
	}
}

// collect finds the groups, in tree order.
func (c *converter) collect(n tree.Node, path string) {
	if len(n.Namespaces) > 0 {
		c.groups = append(c.groups, group{path: path, node: n})
	}
	for _, child := range n.Children {
		c.collect(child, path+"/"+child.Name)
	}
}

// takeTree takes over the tree as it is. Attributes and labels that have no effect become findings.
func (c *converter) takeTree() {
	d := c.trees[0]
	for _, other := range c.trees[1:] {
		c.result.Find(other.Name(), "spec", "only one tree of a cluster is in force; "+d.Name()+" is converted", "move its nodes into that tree")
	}
	errors, _ := manifest.CheckManifest(d.Object)
	for _, e := range errors {
		c.faults.Add(d, "%s", e)
	}
	kept := migration.Applicable(d.Object)
	for _, key := range slices.Sorted(maps.Keys(kept.GetLabels())) {
		if strings.HasPrefix(key, "kube-queue/") {
			c.result.Find(d.Name(), "metadata.labels: "+key, "the label has no effect", "limit the jobs of a node with "+wellknown.MaxJobsResource+" in its max")
		}
	}
	c.tree = kept
	c.findAttributes(d, manifest.Root(d.Object), "spec.root")
}

func (c *converter) findAttributes(d migration.Document, n tree.Node, path string) {
	for _, key := range slices.Sorted(maps.Keys(n.Attributes)) {
		if key != wellknown.ReclaimAttribute {
			c.result.Find(d.Name(), fmt.Sprintf("%s (%s): attributes: %s", path, n.Name, key), "the attribute is preserved and has no effect", cmp.Or(tree.FormerAttributes[key], "nothing"))
		}
	}
	for i, child := range n.Children {
		c.findAttributes(d, child, fmt.Sprintf("%s.children[%d]", path, i))
	}
}

// readNamespace reports settings on namespaces.
func (c *converter) readNamespace(d migration.Document) {
	annotations := d.Object.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(key, prefix+"available-") {
				c.result.Find(d.Name(), "metadata.annotations: "+key, "a namespace may use the quotas whose nodes list it", "list the namespace at each of these nodes of the tree")
			}
		}
	}
}

// pathOf converts a path of the former queue, where the root is always "root", to a path in the tree.
func (c *converter) pathOf(former string) string {
	_, below, deeper := strings.Cut(former, "/")
	if !deeper {
		return c.root.Name
	}
	return c.root.Name + "/" + below
}
