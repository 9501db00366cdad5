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
	// The tree that counts is the one here.
	treeNamespace = "kube-system"
	treeName      = "elasticquotatree"
)

// Open reads a tree from a file; "-" is the standard input.
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

// Read finds the one ElasticQuotaTree among the documents of a file, YAML or JSON,
// also as an item of a List.
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
		return tree.Node{}, fmt.Errorf("%s: there are %d objects of kind %s; leave the one that is to be tried", name, len(found), treeKind)
	case len(others) > 0:
		return tree.Node{}, fmt.Errorf("%s: there is no object of kind %s (%s) in it, only %s", name, treeKind, treeVersion, strings.Join(others, ", "))
	default:
		return tree.Node{}, fmt.Errorf("%s: there is no object in it; a manifest of kind %s (%s) is expected", name, treeKind, treeVersion)
	}
}

// decode a document; nil when there is nothing in it.
func decode(document []byte) (*unstructured.Unstructured, error) {
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("it is no YAML: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(asJSON), []byte("null")) {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(asJSON); err != nil {
		return nil, fmt.Errorf("it is no Kubernetes object: %w", err)
	}
	return object, nil
}

// collect the trees of an object and the kinds of what is none.
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
