package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/require"
)

// field returns the value at a path of nested maps; nil if it does not exist.
func field(value any, path ...string) any {
	object, _ := value.(map[string]any)
	found, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return found
}

const generated = `---
spec:
  versions:
  - name: v1beta1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              root:
                description: root is the node that all others are below.
                type: object
                properties:
                  name: {type: string}
                  children:
                    nullable: true
                    type: array
                    x-kubernetes-preserve-unknown-fields: true
`

func TestUnrollDescribesTheLevelsRequestedAndKeepsWhatIsBelow(t *testing.T) {
	out, err := unroll(generated, 3)
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(out), &doc))
	version := field(doc, "spec", "versions").([]any)[0]
	node := field(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "root")
	for level := 1; level <= 3; level++ {
		if field(node, "properties", "name", "type") != "string" {
			t.Errorf("level %d is not described: %v", level, node)
		}
		if open := field(node, "x-kubernetes-preserve-unknown-fields"); open != nil {
			t.Errorf("level %d keeps unknown fields, so a slip in a name is never noticed", level)
		}
		children := field(node, "properties", "children")
		if field(children, "nullable") != true || field(children, "type") != "array" {
			t.Errorf("level %d: children are no nullable array: %v", level, children)
		}
		if field(children, "x-kubernetes-preserve-unknown-fields") != nil {
			t.Errorf("level %d: children keep unknown fields", level)
		}
		node = field(children, "items")
	}
	if field(node, "x-kubernetes-preserve-unknown-fields") != true || field(node, "properties") != nil {
		t.Errorf("below the described levels everything is to be kept: %v", node)
	}
}

func TestUnrollOfAnUnrolledSchemaChangesNothing(t *testing.T) {
	once, err := unroll(generated, 4)
	require.NoError(t, err)
	twice, err := unroll(once, 4)
	require.NoError(t, err)
	if once != twice {
		t.Errorf("once:\n%s\ntwice:\n%s", once, twice)
	}
}

func TestUnrollSaysWhatItMisses(t *testing.T) {
	for name, test := range map[string]struct{ crd, want string }{
		"no YAML":     {"\t", "yaml"},
		"no versions": {"spec: {}", "no versions"},
		"no root":     {strings.Replace(generated, "root:", "trunk:", 1), "no spec.root"},
		"no children": {strings.Replace(generated, "children:", "kids:", 1), "no property children"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unroll(test.crd, 2)
			require.ErrorSays(t, err, test.want)
		})
	}
}
