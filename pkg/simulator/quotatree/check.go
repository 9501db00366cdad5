package quotatree

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
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
	documents := utilyaml.NewYAMLReader(bufio.NewReader(from))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return trees, faults
		}
		if err != nil {
			return trees, append(faults, fmt.Sprintf("document %d: %v", number, err))
		}
		// A duplicate key is rejected, because only one of its values would count.
		if asJSON, err := yaml.YAMLToJSONStrict(document); err != nil {
			faults = append(faults, fmt.Sprintf("document %d: invalid YAML: %v", number, err))
			continue
		} else if bytes.Equal(bytes.TrimSpace(asJSON), []byte("null")) {
			continue
		}
		object, err := decode(document)
		if err != nil {
			faults = append(faults, fmt.Sprintf("document %d: %v", number, err))
			continue
		}
		found, _ := collect(object, nil, nil)
		for _, tree := range found {
			trees = append(trees, checked(tree))
		}
	}
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
