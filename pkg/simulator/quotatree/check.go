package quotatree

import (
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

// Check checks any number of ElasticQuotaTrees in a YAML or JSON file as kube-queue-controller does. Other objects
// are skipped. faults are about documents that cannot be read.
func Check(from io.Reader) (trees []Checked, faults []string) {
	// A duplicate key is rejected, because only one of its values would count.
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
	name := tree.GetName()
	if name == "" {
		name = "(no name)"
	}
	c := Checked{Tree: tree.GetNamespace() + "/" + name}
	c.Errors, c.Warnings = manifest.CheckManifest(tree)
	return c
}
