// Treeschema completes the CRD of ElasticQuotaTree.
//
// A node of the tree has child nodes, but a CRD schema cannot refer to itself:
// controller-gen describes the root and leaves children open. This program adds
// the schema of the upper levels, so that kubectl and the API server validate
// their fields. Levels below preserve unknown fields. update-codegen.sh runs it.
package main

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/hack/internal/generator"
)

// describedLevels is the number of levels that the schema describes, including the root.
// Each level takes about 2 KB. Real trees have three or four levels.
const describedLevels = 5

func main() {
	generator.Main("CRD-FILE", func(file string) error {
		return generator.Rewrite(file, func(crd string) (string, error) { return unroll(crd, describedLevels) })
	})
}

// unroll returns the CRD with the given number of levels described in each of
// its versions.
func unroll(crd string, levels int) (string, error) {
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(crd), &doc); err != nil {
		return "", err
	}
	versions, _, _ := unstructured.NestedSlice(doc, "spec", "versions")
	if len(versions) == 0 {
		return "", errors.New("the CRD has no versions")
	}
	for _, version := range versions {
		if err := describe(version.(map[string]any), levels); err != nil {
			return "", err
		}
	}
	if err := unstructured.SetNestedSlice(doc, versions, "spec", "versions"); err != nil {
		return "", err
	}
	out, err := yaml.Marshal(doc)
	// controller-gen starts its files with this line.
	return "---\n" + string(out), err
}

const openFields = "x-kubernetes-preserve-unknown-fields"

// describe describes the levels of a version, from the lowest one to the root.
func describe(version map[string]any, levels int) error {
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "root"}
	root, found, _ := unstructured.NestedMap(version, path...)
	if !found {
		return fmt.Errorf("version %v has no spec.root", version["name"])
	}
	children, found, _ := unstructured.NestedMap(root, "properties", "children")
	if !found {
		return fmt.Errorf("spec.root of version %v has no property children", version["name"])
	}
	// The items preserve unknown fields. Setting it here too would preserve unknown fields
	// of the described levels.
	delete(children, openFields)
	node := map[string]any{"type": "object", openFields: true}
	for range levels {
		delete(node, "description") // the root already describes a node
		children["items"] = node
		node = runtime.DeepCopyJSON(root)
		if err := unstructured.SetNestedMap(node, children, "properties", "children"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedMap(version, node, path...)
}
