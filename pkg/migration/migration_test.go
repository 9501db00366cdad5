package migration_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/test/require"
)

func TestADocumentThatCannotBeReadIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, fault string }{
		"broken YAML":                 {"a: [b", "file: document 1: invalid YAML"},
		"a key that is there twice":   {"a: 1\na: 2\n", "file: document 1: invalid YAML"},
		"a text":                      {"hello", "file: document 1: the document is not an object"},
		"no kind":                     {"a: 1\n", "the object has no apiVersion or kind"},
		"an item without a kind":      {"{apiVersion: v1, kind: List, items: [{a: b}]}", "file: document 1, item 1: the object has no apiVersion or kind"},
		"metadata that is a list":     {"{apiVersion: v1, kind: Pod, metadata: []}", "metadata is not an object"},
		"a name that is a number":     {"{apiVersion: v1, kind: Pod, metadata: {name: 7}}", "metadata.name 7 is not text; write it in quotes"},
		"a label that is a boolean":   {"{apiVersion: v1, kind: Pod, metadata: {labels: {a: true}}}", "metadata.labels: the value of a is not text: true"},
		"annotations that are a text": {"{apiVersion: v1, kind: Pod, metadata: {annotations: x}}", "metadata.annotations is not an object"},
		"the second of two documents": {"{apiVersion: v1, kind: Pod}\n---\n{", "file: document 2: invalid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := migration.Read("file", strings.NewReader(test.text))
			require.ErrorSays(t, err, test.fault)
		})
	}
}

func TestListsAreReplacedByTheirItems(t *testing.T) {
	const text = "# nothing\n---\n{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}, {apiVersion: v1, kind: PodList, items: [{apiVersion: v1, kind: Pod, metadata: {name: b}}]}]}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: c}}"
	documents, err := migration.Read("file", strings.NewReader(text))
	require.NoError(t, err)
	var names []string
	for _, d := range documents {
		names = append(names, d.Name())
	}
	if want := []string{"Pod a", "Pod b", "Pod c"}; !slices.Equal(names, want) {
		t.Errorf("the documents are %q, want %q", names, want)
	}
}

func TestWrittenObjectsAreReadAgain(t *testing.T) {
	objects := []*unstructured.Unstructured{
		migration.Object("v1", "Pod", "a", "b", map[string]any{"spec": map[string]any{"x": int64(1)}}),
		migration.Object("v1", "Node", "", "c", nil),
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"yaml": func(to *bytes.Buffer) error { return migration.WriteYAML(to, objects) },
		"json": func(to *bytes.Buffer) error { return migration.WriteJSON(to, objects) },
	} {
		var text bytes.Buffer
		require.NoError(t, write(&text))
		read, err := migration.Read("file", &text)
		require.NoError(t, err)
		if len(read) != 2 || read[0].Name() != "Pod a/b" || read[1].Name() != "Node c" {
			t.Errorf("%s: read %v", name, read)
		}
	}
}

// A kind that is added to the registry must be known to the converters.
func TestAllKindsOfJobsAreKnown(t *testing.T) {
	var known []string
	for _, kind := range migration.JobKinds() {
		known = append(known, kind.Extension)
	}
	adapters := append(registry.All(), registry.Pods()[0])
	for _, adapter := range adapters {
		kind := adapter.Kind()
		if !slices.Contains(known, kind.Name) {
			t.Errorf("%s is not known", kind.Name)
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind.GroupVersionKind)
		if found, is := migration.KindOfJob(object); !is || found.Extension != kind.Name {
			t.Errorf("%v is known as %v", object.GroupVersionKind(), found)
		}
	}
	if len(known) != len(adapters) {
		t.Errorf("%d kinds are known, and there are %d", len(known), len(adapters))
	}
	pod := migration.Object("v1", "Pod", "", "a", nil)
	pod.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Job", Controller: new(true)}})
	if _, is := migration.KindOfJob(pod); is {
		t.Error("a pod of a Job is known as a job")
	}
}

func TestJSONObjectsNeedNoSeparator(t *testing.T) {
	const a, b = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}`, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}`
	for _, between := range []string{"", "\n", "\n\n"} {
		read, err := migration.Read("file", strings.NewReader(a+between+b+"\n"))
		require.NoError(t, err)
		if len(read) != 2 || read[1].Name() != "Pod b" {
			t.Errorf("between them %q: read %v", between, read)
		}
	}
	if _, err := migration.Read("file", strings.NewReader(a+"\n{")); err == nil {
		t.Error("a broken second object is ignored")
	}
}
