package quotatree

import (
	"cmp"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

// Checked is what was found in an ElasticQuotaTree.
type Checked struct {
	// Tree is the namespace and name of the tree.
	Tree             string
	Errors, Warnings []string
}

// Check checks the ElasticQuotaTrees in a YAML or JSON file as kube-queue-controller does. It skips other objects.
// faults describes documents that cannot be read.
func Check(from io.Reader) (trees []Checked, faults []string) {
	// Reject duplicate keys, because only one of the values would count.
	for _, d := range documents(from, yaml.YAMLToJSONStrict) {
		if d.err != nil {
			faults = append(faults, d.err.Error())
			continue
		}
		found, _ := collect(d.object, nil, nil)
		for _, tree := range found {
			trees = append(trees, checked(tree))
		}
	}
	return trees, faults
}

func checked(tree *unstructured.Unstructured) Checked {
	c := Checked{Tree: tree.GetNamespace() + "/" + cmp.Or(tree.GetName(), "(no name)")}
	c.Errors, c.Warnings = manifest.CheckManifest(tree)
	return c
}
