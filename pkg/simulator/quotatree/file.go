package quotatree

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

const (
	treeGroup   = "scheduling.sigs.k8s.io"
	treeVersion = treeGroup + "/v1beta1"
	treeKind    = "ElasticQuotaTree"
	// Namespace and name of a proposed tree.
	treeNamespace = "kube-system"
	treeName      = "elasticquotatree"
)

// Open reads a tree from a file; "-" reads the standard input.
func Open(name string) (tree.Node, error) {
	if name == "-" {
		return Read(os.Stdin, "standard input")
	}
	f, err := os.Open(name)
	if err != nil {
		return tree.Node{}, fmt.Errorf("reading the quota tree: %w", err)
	}
	defer f.Close()
	return Read(f, name)
}

// Read returns the single ElasticQuotaTree of a YAML or JSON file. The tree may be one of
// several documents, or an item of a List.
func Read(from io.Reader, name string) (tree.Node, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(from))
	var found []*unstructured.Unstructured
	var others []string
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return tree.Node{}, fmt.Errorf("%s: %w", name, err)
		}
		object, err := decode(document)
		if err != nil {
			return tree.Node{}, fmt.Errorf("%s: document %d: %w", name, number, err)
		}
		if object != nil {
			found, others = collect(object, found, others)
		}
	}
	switch {
	case len(found) == 1:
		return manifest.Root(found[0]), nil
	case len(found) > 1:
		return tree.Node{}, fmt.Errorf("%s: found %d objects of kind %s; keep only the one to try", name, len(found), treeKind)
	case len(others) > 0:
		return tree.Node{}, fmt.Errorf("%s: no object of kind %s (%s) found, only %s", name, treeKind, treeVersion, strings.Join(others, ", "))
	default:
		return tree.Node{}, fmt.Errorf("%s: no object found; expected a manifest of kind %s (%s)", name, treeKind, treeVersion)
	}
}

// decode decodes a document; the result is nil if the document is empty.
func decode(document []byte) (*unstructured.Unstructured, error) {
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(asJSON), []byte("null")) {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(asJSON); err != nil {
		return nil, fmt.Errorf("not a Kubernetes object: %w", err)
	}
	return object, nil
}

// collect appends the trees of an object to found, and the kinds of other objects to others.
func collect(object *unstructured.Unstructured, found []*unstructured.Unstructured, others []string) ([]*unstructured.Unstructured, []string) {
	if items, isList := object.Object["items"].([]any); isList {
		for _, item := range items {
			if fields, ok := item.(map[string]any); ok {
				found, others = collect(&unstructured.Unstructured{Object: fields}, found, others)
			}
		}
		return found, others
	}
	if object.GetKind() == treeKind && object.GroupVersionKind().Group == treeGroup {
		return append(found, object), others
	}
	return found, append(others, fmt.Sprintf("%s (%s)", object.GetKind(), object.GetAPIVersion()))
}
