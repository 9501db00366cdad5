package ack

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

// Keys of an ElasticQuota.
const (
	koordinator   = "quota.scheduling.koordinator.sh/"
	parentLabel   = koordinator + "parent"
	isParentLabel = koordinator + "is-parent"
	// koordinatorRoot is the quota above all quotas without a parent.
	koordinatorRoot = "koordinator-root-quota"
)

// addQuota reads an ElasticQuota. ElasticQuotas have namespaces, but their names are unique in a cluster.
func (c *converter) addQuota(d migration.Document) {
	name := d.Object.GetName()
	if other, has := c.quotas[name]; has {
		c.faults.Add(d, "%s has the same name; remove one", other.Name())
		return
	}
	c.quotas[name] = d
	for _, prefix := range prefixes {
		if policy := d.Object.GetLabels()[prefix+"queue-policy"]; policy != "" {
			c.policies[name] = policy
		}
	}
}

// treeOfQuotas builds a tree from ElasticQuotas. Jobs choose a quota only by a label, from any namespace, so each leaf
// lists every namespace.
func (c *converter) treeOfQuotas() {
	children := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(c.quotas)) {
		if name == koordinatorRoot {
			continue
		}
		d := c.quotas[name]
		parent := cmp.Or(d.Object.GetLabels()[parentLabel], koordinatorRoot)
		if _, has := c.quotas[parent]; !has && parent != koordinatorRoot {
			c.faults.Add(d, "the input has no ElasticQuota %q, which is its parent; add it", parent)
			continue
		}
		children[parent] = append(children[parent], name)
		c.findKeys(d)
	}
	placed := 0
	var build func(name string, depth int) map[string]any
	build = func(name string, depth int) map[string]any {
		node := map[string]any{"name": name}
		if d, has := c.quotas[name]; has {
			placed++
			c.copyAmounts(d, node)
		}
		var below []any
		for _, child := range children[name] {
			below = append(below, build(child, depth+1))
		}
		if below != nil {
			node["children"] = below
		} else if name != koordinatorRoot && c.quotas[name].Object.GetLabels()[isParentLabel] != "true" {
			node["namespaces"] = []any{"*"}
		}
		return node
	}
	root := build(koordinatorRoot, 0)
	if placed < len(c.quotas) && len(c.faults) == 0 {
		for _, name := range slices.Sorted(maps.Keys(c.quotas)) {
			if c.inCircle(name) {
				c.faults.Add(c.quotas[name], "the ElasticQuota is its own ancestor; change the label %s", parentLabel)
			}
		}
	}
	if len(c.faults) > 0 {
		return
	}
	c.tree = migration.Object(manifest.Version, manifest.Kind, manifest.Namespace, "elasticquotatree", map[string]any{"spec": map[string]any{"root": root}})
	raw, err := json.Marshal(c.tree.Object)
	if err != nil {
		c.faults = append(c.faults, err.Error())
		return
	}
	errors, _ := manifest.Check(raw)
	for _, e := range errors {
		c.faults = append(c.faults, "the ElasticQuotas make an invalid tree: "+e)
	}
	c.result.Step("Jobs without the label kube-queue/quota-name use the first quota of the tree; koord-queue leaves them waiting. List namespaces instead of \"*\" at the nodes to bind each namespace to its quota.")
}

func (c *converter) inCircle(name string) bool {
	seen := map[string]bool{}
	for at := name; ; {
		d, has := c.quotas[at]
		if !has {
			return false
		}
		if seen[at] {
			return at == name
		}
		seen[at] = true
		at = d.Object.GetLabels()[parentLabel]
	}
}

func (c *converter) copyAmounts(d migration.Document, node map[string]any) {
	for _, field := range []string{"min", "max"} {
		amounts, has, err := unstructured.NestedMap(d.Object.Object, "spec", field)
		if err != nil {
			c.faults.Add(d, "%v", err)
		} else if has && len(amounts) > 0 {
			node[field] = amounts
		}
	}
	if node["max"] == nil && d.Object.GetName() != koordinatorRoot {
		c.result.Find(d.Name(), "spec.max", "a quota without a max is unlimited; koord-queue admits nothing to it", "set a max")
	}
}

// findKeys reports labels and annotations of an ElasticQuota that have no equivalent.
func (c *converter) findKeys(d migration.Document) {
	report := func(field string, keys map[string]string, known ...string) {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if slices.Contains(known, key) {
				continue
			}
			if strings.HasPrefix(key, koordinator) || hasPrefix(key) {
				c.result.Find(d.Name(), "metadata."+field+": "+key, "the setting has no equivalent", queueInstead(key))
			}
		}
	}
	report("labels", d.Object.GetLabels(), parentLabel, isParentLabel, "kube-queue/queue-policy", "koord-queue/queue-policy")
	report("annotations", d.Object.GetAnnotations())
}
