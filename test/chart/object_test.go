package chart

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// object is one manifest.
type object struct {
	unstructured.Unstructured
	text string
}

func (o object) String() string { return o.GetKind() + " " + o.GetName() }

func (o object) labels(path ...string) map[string]string {
	found, _, _ := unstructured.NestedStringMap(o.Object, path...)
	return found
}

// list returns a list of maps.
func (o object) list(path ...string) []map[string]any {
	found, _, _ := unstructured.NestedSlice(o.Object, path...)
	return mapsOf(found)
}

// some returns a list of maps that must not be empty, because a loop over nothing proves nothing.
func (o object) some(t *testing.T, path ...string) []map[string]any {
	t.Helper()
	found := o.list(path...)
	if len(found) == 0 {
		t.Fatalf("%v has no %s", o, strings.Join(path, "."))
	}
	return found
}

func mapsOf(items []any) []map[string]any {
	var all []map[string]any
	for _, item := range items {
		if m, isMap := item.(map[string]any); isMap {
			all = append(all, m)
		}
	}
	return all
}

// objects returns the objects of a stream of manifests. A duplicate key is an error.
func objects(t *testing.T, stream string) []object {
	t.Helper()
	var all []object
	for text := range strings.SplitSeq("\n"+stream, "\n---\n") {
		var content map[string]any
		if err := yaml.UnmarshalStrict([]byte(text), &content); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if len(content) == 0 {
			continue
		}
		json, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		o := object{text: text}
		if err := o.UnmarshalJSON(json); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		all = append(all, o)
	}
	return all
}

// kind returns the objects of a kind by name.
func kind(all []object, kind string) map[string]object {
	found := map[string]object{}
	for _, o := range all {
		if o.GetKind() == kind {
			found[o.GetName()] = o
		}
	}
	return found
}

// the returns the object of a kind by name.
func the(t *testing.T, all []object, wanted, name string) object {
	t.Helper()
	found, is := kind(all, wanted)[name]
	if !is {
		t.Fatalf("there is no %s %s", wanted, name)
	}
	return found
}

// container returns the only container of a Deployment.
func container(t *testing.T, deployment object) map[string]any {
	t.Helper()
	containers := deployment.list("spec", "template", "spec", "containers")
	if len(containers) != 1 {
		t.Fatalf("%v has %d containers", deployment, len(containers))
	}
	return containers[0]
}
