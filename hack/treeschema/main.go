// Treeschema completes the CRD of ElasticQuotaTree.
//
// A node of the tree has child nodes, but a CRD schema cannot refer to itself:
// controller-gen describes the root and leaves children open. This program adds
// the schema of the upper levels, so that kubectl and the API server validate
// their fields. Levels below preserve unknown fields. update-codegen.sh runs it.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// describedLevels is the number of levels that the schema describes, including the root.
// Each level takes about 2 KB. Real trees have three or four levels.
const describedLevels = 5

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: treeschema CRD-FILE")
		os.Exit(2)
	}
	if err := rewrite(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "treeschema: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func rewrite(file string) error {
	in, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	out, err := unroll(in, describedLevels)
	if err != nil {
		return err
	}
	return os.WriteFile(file, out, 0o644)
}

// unroll returns the CRD with the given number of levels described in each of
// its versions.
func unroll(crd []byte, levels int) ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(crd, &doc); err != nil {
		return nil, err
	}
	versions, _ := field(doc, "spec", "versions").([]any)
	if len(versions) == 0 {
		return nil, errors.New("the CRD has no versions")
	}
	for _, version := range versions {
		spec := field(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
		root, ok := field(spec, "root").(map[string]any)
		if !ok {
			return nil, fmt.Errorf("version %v has no spec.root", field(version, "name"))
		}
		node, err := describe(root, levels)
		if err != nil {
			return nil, err
		}
		spec.(map[string]any)["root"] = node
	}
	out, err := yaml.Marshal(doc)
	if err != nil {
		return nil, err
	}
	// controller-gen starts its files with this line.
	return append([]byte("---\n"), bytes.TrimPrefix(out, []byte("---\n"))...), nil
}

// describe returns the schema of a node with levels-1 levels of children
// described below it.
func describe(node map[string]any, levels int) (map[string]any, error) {
	properties, ok := field(node, "properties").(map[string]any)
	if !ok {
		return nil, errors.New("the node has no properties")
	}
	children, ok := properties["children"].(map[string]any)
	if !ok {
		return nil, errors.New("the node has no property children")
	}
	below := map[string]any{
		"type":                                 "object",
		"x-kubernetes-preserve-unknown-fields": true,
	}
	if levels > 1 {
		child, err := describe(node, levels-1)
		if err != nil {
			return nil, err
		}
		// The root already describes a node.
		delete(child, "description")
		below = child
	}
	described := with(children, "items", below)
	// The items preserve unknown fields. Setting it here too would preserve unknown fields
	// of the described levels.
	delete(described, "x-kubernetes-preserve-unknown-fields")
	return with(node, "properties", with(properties, "children", described)), nil
}

// with returns a copy of m in which key is value.
func with(m map[string]any, key string, value any) map[string]any {
	out := make(map[string]any, len(m)+1)
	for k, v := range m {
		out[k] = v
	}
	out[key] = value
	return out
}

// field returns the value at a path of nested maps; nil if it does not exist.
func field(value any, path ...string) any {
	for _, name := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[name]
	}
	return value
}
