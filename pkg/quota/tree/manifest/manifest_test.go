package manifest_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// object is an ElasticQuotaTree as an informer has it.
func object(t testing.TB, root string) *unstructured.Unstructured {
	t.Helper()
	var value any
	require.NoError(t, yaml.Unmarshal([]byte(root), &value))
	return holding(value)
}

func holding(root any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"root": root}}}
}

func TestReadingATree(t *testing.T) {
	for _, c := range []struct {
		name, root string
		faults     []string
	}{
		{"nulls and empty lists are as good as absent", `{name: r, namespaces: null, min: null, max: null, attributes: null, children: null}`, nil},
		{"plain integers and floats", `{name: r, namespaces: [a], max: {cpu: 4, memory: 1.5, x: "0M"}}`, nil},
		{"a quantity that is null is not written", `{name: r, max: {cpu: null}}`, nil},
		{"an unreadable quantity", `{name: r, max: {cpu: plenty}}`, []string{"max: cpu", "plenty"}},
		{"a quantity with a monstrous exponent", `{name: r, max: {cpu: "1e-1000000000"}}`, []string{"max: cpu"}},
		{"a quantity that is a list", `{name: r, max: {cpu: [1]}}`, []string{"max: cpu: expected a quantity, got a list"}},
		{"a name that is a number", `{name: 5}`, []string{"name: expected a string, got a number"}},
		{"namespaces that are no list", `{name: r, namespaces: a}`, []string{"namespaces: expected a list, got a string"}},
		{"a namespace that is a number", `{name: r, namespaces: [7]}`, []string{"namespaces[0]: expected a string, got a number"}},
		{"children that are a map", `{name: r, children: {a: b}}`, []string{"children: expected a list, got an object"}},
		{"a child that is a string", `{name: r, children: [a]}`, []string{"expected a node", "got a string"}},
		{"a root that is a list", `[1]`, []string{"expected a node", "got a list"}},
		{"no root", `null`, []string{"expected a node", "got null"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := manifest.Root(object(t, c.root))
			_, _, err := tree.New(resources.NewNames(), node, tree.Options{})
			if (err != nil) != (c.faults != nil) {
				t.Fatalf("error %v", err)
			}
			require.Says(t, "the error", fmt.Sprint(err), c.faults...)
		})
	}
}

// No matter what a tree contains, reading it gives a backend or faults.
func FuzzRoot(f *testing.F) {
	for _, root := range []string{`{name: r, namespaces: [a], max: {cpu: 4}}`, `{name: r, children: [{name: a, max: {cpu: "1e9"}, namespaces: ["*"]}]}`, `{max: {"": -1}}`, `[[[`, `{children: [[]]}`} {
		f.Add(root)
	}
	f.Fuzz(func(t *testing.T, root string) {
		var value any
		if err := yaml.Unmarshal([]byte(root), &value); err != nil {
			return
		}
		backend, _, err := tree.New(resources.NewNames(), manifest.Root(holding(value)), tree.Options{})
		if (backend == nil) == (err == nil) {
			t.Fatalf("backend %v and error %v", backend, err)
		}
	})
}
