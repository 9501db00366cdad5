package manifest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/test/require"
)

const head = "apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\nmetadata: {name: t, namespace: kube-system}\n"

func TestCheckingATree(t *testing.T) {
	for _, c := range []struct {
		name, text       string
		errors, warnings []string
		// manifest are the errors in a file; nil if they are the same. All warnings about unknown fields are errors then.
		manifest []string
	}{
		{"a valid one", head + "spec: {root: {name: r, namespaces: [a], max: {cpu: 4, memory: 10Gi}}}", nil, nil, nil},
		{"a misspelled field", head + "spec: {root: {name: r, mx: {cpu: 4}, childern: [{name: a}], maxx: {}, foo: 1}}", nil, []string{
			`r: unknown field "childern" is ignored; did you mean "children"?`,
			`r: unknown field "foo" is ignored; remove it, a node has only name, namespaces, min, max, attributes, children`,
			`r: unknown field "maxx" is ignored; did you mean "max"?`,
			`r: unknown field "mx" is ignored; did you mean "max"?`,
		}, []string{
			`r: unknown field "childern"; did you mean "children"?`,
			`r: unknown field "foo"; remove it, a node has only name, namespaces, min, max, attributes, children`,
			`r: unknown field "maxx"; did you mean "max"?`,
			`r: unknown field "mx"; did you mean "max"?`,
		}},
		{"a misspelled field far below", head + "spec: {root: {name: r, children: [{name: a, Max: {cpu: 4}}]}}", nil,
			[]string{`r/a: unknown field "Max" is ignored; did you mean "max"?`}, []string{`r/a: unknown field "Max"; did you mean "max"?`}},
		{"a quantity with the unit of other programs", head + "spec: {root: {name: r, max: {memory: 10Gb}}}",
			[]string{`r: max: memory: quantity "10Gb" is not a number with a suffix that Kubernetes knows; did you mean "10Gi" or "10G"?`}, nil, nil},
		{"another namespace", strings.Replace(head, "kube-system", "team", 1) + "spec: {root: {name: r}}", nil,
			[]string{`the tree is in namespace "team", and only trees in namespace kube-system are used; set metadata.namespace to kube-system`}, nil},
		{"no root", head + "spec: {}", []string{"spec.root: the root node is missing; set it"}, nil, nil},
		{"no spec", head, []string{"spec.root: the root node is missing; set it"}, nil, nil},
		{"the root node in the place of spec", head + "spec: {name: r, max: {cpu: 4}, roots: {}}", []string{"spec.root: the root node is missing; set it"}, nil, []string{
			`spec: unknown field "max"; move it into root, which is a node`,
			`spec: unknown field "name"; move it into root, which is a node`,
			`spec: unknown field "roots"; spec has only root`,
			"spec.root: the root node is missing; set it",
		}},
		{"another version", strings.Replace(head, "v1beta1", "v1", 1) + "spec: {root: {name: r}}", nil, nil,
			[]string{"apiVersion is scheduling.sigs.k8s.io/v1; set it to scheduling.sigs.k8s.io/v1beta1"}},
		{"another kind", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
			[]string{"the object is a Namespace (v1), not an ElasticQuotaTree (scheduling.sigs.k8s.io/v1beta1); correct kind and apiVersion"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := yaml.YAMLToJSON([]byte(c.text))
			require.NoError(t, err)
			errors, warnings := manifest.Check(raw)
			if !slices.Equal(errors, c.errors) || !slices.Equal(warnings, c.warnings) {
				t.Errorf("errors\n  %s\nwarnings\n  %s", strings.Join(errors, "\n  "), strings.Join(warnings, "\n  "))
			}
			object := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(raw, object))
			want := c.errors
			if c.manifest != nil {
				want = c.manifest
			}
			if errors, _ := manifest.CheckManifest(object); !slices.Equal(errors, want) {
				t.Errorf("errors of the file\n  %s\nwant\n  %s", strings.Join(errors, "\n  "), strings.Join(want, "\n  "))
			}
		})
	}
}

func TestCheckingWhatIsNoObject(t *testing.T) {
	for _, raw := range []string{"", "null", "[1]", `{"kind": 7}`, "{"} {
		if errors, _ := manifest.Check([]byte(raw)); len(errors) != 1 || !strings.HasPrefix(errors[0], "cannot read the object: ") {
			t.Errorf("%q: errors %q", raw, errors)
		}
	}
}
