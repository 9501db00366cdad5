package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// treeObject makes a tree as an informer has it.
func treeObject(t testing.TB, namespace, name string, age time.Duration, generation int64, root string) *unstructured.Unstructured {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {namespace: %s, name: %s, uid: uid-%s, creationTimestamp: %q}
spec: {root: %s}
`, namespace, name, name, time.Unix(1_700_000_000, 0).Add(-age).UTC().Format(time.RFC3339), root)
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetGeneration(generation)
	return u
}

const goodRoot = `{name: root, namespaces: [a], max: {cpu: 4}}`

func newTestForest(t testing.TB) *forest {
	t.Helper()
	rate, err := resources.ParseRate("1")
	if err != nil {
		t.Fatal(err)
	}
	f := newForest(resources.NewNames(), rate)
	f.start()
	return f
}

func TestNoTreeIsChosenBeforeAllAreListed(t *testing.T) {
	f := newForest(resources.NewNames(), resources.Rate{})
	invalid := treeObject(t, "kube-system", "zzz", 2*time.Hour, 1, `{name: root, max: {cpu: -1}}`)
	for _, c := range []treeChange{
		f.set("kube-system/aaa", treeObject(t, "kube-system", "aaa", time.Hour, 1, goodRoot)),
		f.set("kube-system/zzz", invalid),
	} {
		if c.quota != nil || c.events != nil {
			t.Fatalf("decided before all was listed: %+v", c)
		}
	}
	c := f.start()
	if f.chosen != invalid || c.quota.Missing == nil || c.quota.Missing.Reason != quota.ReasonInvalidQuotaTree {
		t.Fatalf("the oldest tree does not decide: %+v", c)
	}
	if got := reasonsOf(c.events); got != "IgnoredQuotaTree aaa, InvalidQuotaTree zzz" {
		t.Fatalf("events %s", got)
	}
}

func TestAnInvalidTreeInPlaceOfADeletedOneReleasesNothing(t *testing.T) {
	f := newTestForest(t)
	f.set("kube-system/old", treeObject(t, "kube-system", "old", 2*time.Hour, 1, goodRoot))
	f.set("kube-system/young", treeObject(t, "kube-system", "young", time.Hour, 1, `{name: root, max: {cpu: -1}}`))
	if c := f.set("kube-system/old", nil); c.quota == nil || c.quota.Missing == nil || c.quota.Missing.Reason != quota.ReasonInvalidQuotaTree {
		t.Fatalf("the deleted tree is still in force: %+v", c)
	}
}

func reasonsOf(events []treeEvent) string {
	var reasons []string
	for _, e := range events {
		reasons = append(reasons, e.reason+" "+e.about.GetName())
	}
	return strings.Join(reasons, ", ")
}

func TestTheOldestTreeInItsNamespaceCounts(t *testing.T) {
	f := newTestForest(t)
	if c := f.set("kube-system/young", treeObject(t, "kube-system", "young", time.Hour, 1, goodRoot)); c.quota == nil || c.quota.Backend == nil {
		t.Fatal("the only tree is not in force")
	}
	c := f.set("kube-system/old", treeObject(t, "kube-system", "old", 2*time.Hour, 1, goodRoot))
	if c.quota == nil || f.chosen.GetName() != "old" {
		t.Fatal("the older tree is not in force")
	}
	c = f.set("default/ancient", treeObject(t, "default", "ancient", 9*time.Hour, 1, goodRoot))
	if c.quota != nil || reasonsOf(c.events) != "IgnoredQuotaTree ancient" {
		t.Fatalf("a tree of another namespace: %+v", c)
	}
	c = f.set("kube-system/young", treeObject(t, "kube-system", "young", time.Hour, 2, goodRoot))
	if c.quota != nil || reasonsOf(c.events) != "IgnoredQuotaTree young" {
		t.Fatalf("a change of a tree that does not count: %+v", c)
	}
	if c = f.set("kube-system/old", nil); c.quota == nil || f.chosen.GetName() != "young" {
		t.Fatal("with the old tree deleted the next is not in force")
	}
	if c = f.set("kube-system/young", nil); c.quota == nil || c.quota.Backend != nil || c.quota.Missing.Reason != quota.ReasonNoQuota {
		t.Fatalf("with all trees deleted: %+v", c)
	}
}

func TestAnInvalidTreeChangesNothingButWhatItSays(t *testing.T) {
	f := newTestForest(t)
	c := f.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 1, `{name: root, namespaces: [a], max: {cpu: -4}}`))
	if c.quota == nil || c.quota.Missing == nil || c.quota.Missing.Reason != quota.ReasonInvalidQuotaTree {
		t.Fatalf("an invalid first tree: %+v", c)
	}
	if c = f.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 2, goodRoot)); c.quota == nil || c.quota.Backend == nil {
		t.Fatal("mended, it is not in force")
	}
	good := f.backend
	c = f.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 3, `{name: root, children: [{name: x}, {name: x}]}`))
	if c.quota != nil || f.backend != good {
		t.Fatal("an invalid tree replaced the last good one")
	}
	if reasonsOf(c.events) != "InvalidQuotaTree t" || !strings.Contains(f.problem, "last valid version of the tree stays in force") {
		t.Fatalf("events %s, problem %q", reasonsOf(c.events), f.problem)
	}
	// Its status alone changes: nothing is said again.
	if c = f.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 3, `{name: root, children: [{name: x}, {name: x}]}`)); c.quota != nil || c.events != nil {
		t.Fatalf("a change of metadata: %+v", c)
	}
}

func TestDecodingATree(t *testing.T) {
	for _, c := range []struct {
		name, root string
		faults     []string
	}{
		{"nulls and empty lists are as good as absent", `{name: r, namespaces: null, min: null, max: null, attributes: null, children: null}`, nil},
		{"plain integers and floats", `{name: r, namespaces: [a], max: {cpu: 4, memory: 1.5, x: "0M"}}`, nil},
		{"a quantity that is null is not written", `{name: r, max: {cpu: null}}`, nil},
		{"an unreadable quantity", `{name: r, max: {cpu: lots}}`, []string{"max: cpu", "lots"}},
		{"a quantity with a monstrous exponent", `{name: r, max: {cpu: "1e-1000000000"}}`, []string{"max: cpu"}},
		{"a quantity that is a list", `{name: r, max: {cpu: [1]}}`, []string{"max: cpu"}},
		{"a name that is a number", `{name: 5}`, []string{"name: a string"}},
		{"namespaces that are no list", `{name: r, namespaces: a}`, []string{"namespaces: a list"}},
		{"a namespace that is a number", `{name: r, namespaces: [7]}`, []string{"namespaces[0]"}},
		{"children that are a map", `{name: r, children: {a: b}}`, []string{"children: a list"}},
		{"a child that is a string", `{name: r, children: [a]}`, []string{"a node is expected"}},
		{"a root that is a list", `[1]`, []string{"a node is expected"}},
		{"no root", `null`, []string{"a node is expected"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := decodeTree(treeObject(t, "kube-system", "t", 0, 1, c.root))
			_, _, err := tree.New(resources.NewNames(), node, tree.Options{})
			if (err != nil) != (c.faults != nil) {
				t.Fatalf("error %v", err)
			}
			for _, fault := range c.faults {
				if !strings.Contains(err.Error(), fault) {
					t.Errorf("%q does not say %q", err, fault)
				}
			}
		})
	}
}

// Whatever is written in a tree, reading it gives a backend or faults.
func FuzzDecodeTree(f *testing.F) {
	for _, root := range []string{goodRoot, `{name: r, children: [{name: a, max: {cpu: "1e9"}, namespaces: ["*"]}]}`, `{max: {"": -1}}`, `[[[`, `{children: [[]]}`} {
		f.Add(root)
	}
	f.Fuzz(func(t *testing.T, root string) {
		var value any
		if err := yaml.Unmarshal([]byte(root), &value); err != nil {
			return
		}
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"root": value}}}
		backend, _, err := tree.New(resources.NewNames(), decodeTree(object), tree.Options{})
		if (backend == nil) == (err == nil) {
			t.Fatalf("backend %v and error %v", backend, err)
		}
	})
}
