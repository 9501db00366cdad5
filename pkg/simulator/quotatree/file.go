package quotatree

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

// Read returns the single ElasticQuotaTree of a YAML or JSON file. The tree may be one of
// several documents, or an item of a List.
func Read(from io.Reader, name string) (tree.Node, error) {
	var found []*unstructured.Unstructured
	var others []string
	for _, d := range documents(from, yaml.YAMLToJSON) {
		if d.err != nil {
			return tree.Node{}, fmt.Errorf("%s: %w", name, d.err)
		}
		found, others = collect(d.object, found, others)
	}
	switch {
	case len(found) == 1:
		if faults, _ := manifest.CheckManifest(found[0]); len(faults) > 0 {
			return tree.Node{}, fmt.Errorf("%s: invalid quota tree: %s", name, strings.Join(faults, "; "))
		}
		return manifest.Root(found[0]), nil
	case len(found) > 1:
		return tree.Node{}, fmt.Errorf("%s: found %d objects of kind %s; keep only the one to try", name, len(found), manifest.Kind)
	case len(others) > 0:
		return tree.Node{}, fmt.Errorf("%s: no object of kind %s (%s) found, only %s", name, manifest.Kind, manifest.Version, strings.Join(others, ", "))
	default:
		return tree.Node{}, fmt.Errorf("%s: no object found; expected a manifest of kind %s (%s)", name, manifest.Kind, manifest.Version)
	}
}

// document is a document of a file: its object, or why it cannot be read.
type document struct {
	object *unstructured.Unstructured
	err    error
}

// documents returns the documents of a YAML or JSON file that are not empty.
func documents(from io.Reader, toJSON func([]byte) ([]byte, error)) []document {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(from))
	var all []document
	for number := 1; ; number++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			return append(all, document{err: fmt.Errorf("document %d: %w", number, err)})
		}
		object, err := decode(text, toJSON)
		if err != nil {
			err = fmt.Errorf("document %d: %w", number, err)
		}
		if object != nil || err != nil {
			all = append(all, document{object, err})
		}
	}
}

// decode decodes a document; the result is nil if the document is empty.
func decode(document []byte, toJSON func([]byte) ([]byte, error)) (*unstructured.Unstructured, error) {
	asJSON, err := toJSON(document)
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
	if object.GetKind() == manifest.Kind && object.GroupVersionKind().Group == manifest.Group {
		return append(found, object), others
	}
	return found, append(others, fmt.Sprintf("%s (%s)", object.GetKind(), object.GetAPIVersion()))
}
