package elasticquota

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
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
	f := newForest(resources.NewNames(), tree.Options{Oversell: rate})
	f.start()
	return f
}

func TestNoTreeIsChosenBeforeAllAreListed(t *testing.T) {
	f := newForest(resources.NewNames(), tree.Options{})
	invalid := treeObject(t, "kube-system", "zzz", 2*time.Hour, 1, `{name: root, max: {cpu: -1}}`)
	for _, c := range []backend.Change{
		f.set("kube-system/aaa", treeObject(t, "kube-system", "aaa", time.Hour, 1, goodRoot)),
		f.set("kube-system/zzz", invalid),
	} {
		if c.Quota != nil || c.Notices != nil {
			t.Fatalf("decided before all was listed: %+v", c)
		}
	}
	c := f.start()
	if f.chosen != invalid || c.Quota.Missing == nil || c.Quota.Missing.Reason != wellknown.ReasonInvalidQuotaTree {
		t.Fatalf("the oldest tree does not decide: %+v", c)
	}
	if got := reasonsOf(c.Notices); got != "IgnoredQuotaTree aaa, InvalidQuotaTree zzz" {
		t.Fatalf("events %s", got)
	}
}

func TestAnInvalidTreeInPlaceOfADeletedOneReleasesNothing(t *testing.T) {
	f := newTestForest(t)
	f.set("kube-system/old", treeObject(t, "kube-system", "old", 2*time.Hour, 1, goodRoot))
	f.set("kube-system/young", treeObject(t, "kube-system", "young", time.Hour, 1, `{name: root, max: {cpu: -1}}`))
	if c := f.set("kube-system/old", nil); c.Quota == nil || c.Quota.Missing == nil || c.Quota.Missing.Reason != wellknown.ReasonInvalidQuotaTree {
		t.Fatalf("the deleted tree is still in force: %+v", c)
	}
}

func reasonsOf(notices []backend.Notice) string {
	var reasons []string
	for _, n := range notices {
		reasons = append(reasons, string(n.Reason)+" "+n.About.GetName())
	}
	return strings.Join(reasons, ", ")
}

func TestTheOldestTreeInItsNamespaceCounts(t *testing.T) {
	f := newTestForest(t)
	if c := f.set("kube-system/young", treeObject(t, "kube-system", "young", time.Hour, 1, goodRoot)); c.Quota == nil || c.Quota.Backend == nil {
		t.Fatal("the only tree is not in force")
	}
	c := f.set("kube-system/old", treeObject(t, "kube-system", "old", 2*time.Hour, 1, goodRoot))
	if c.Quota == nil || f.chosen.GetName() != "old" {
		t.Fatal("the older tree is not in force")
	}
	c = f.set("default/ancient", treeObject(t, "default", "ancient", 9*time.Hour, 1, goodRoot))
	if c.Quota != nil || reasonsOf(c.Notices) != "IgnoredQuotaTree ancient" {
		t.Fatalf("a tree of another namespace: %+v", c)
	}
	c = f.set("kube-system/young", treeObject(t, "kube-system", "young", time.Hour, 2, goodRoot))
	if c.Quota != nil || reasonsOf(c.Notices) != "IgnoredQuotaTree young" {
		t.Fatalf("a change of a tree that does not count: %+v", c)
	}
	if c = f.set("kube-system/old", nil); c.Quota == nil || f.chosen.GetName() != "young" {
		t.Fatal("with the old tree deleted the next is not in force")
	}
	if c = f.set("kube-system/young", nil); c.Quota == nil || c.Quota.Backend != nil || c.Quota.Missing.Reason != wellknown.ReasonNoQuota {
		t.Fatalf("with all trees deleted: %+v", c)
	}
}

func TestAnInvalidTreeChangesNothingButWhatItSays(t *testing.T) {
	f := newTestForest(t)
	c := f.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 1, `{name: root, namespaces: [a], max: {cpu: -4}}`))
	if c.Quota == nil || c.Quota.Missing == nil || c.Quota.Missing.Reason != wellknown.ReasonInvalidQuotaTree {
		t.Fatalf("an invalid first tree: %+v", c)
	}
	if c = f.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 2, goodRoot)); c.Quota == nil || c.Quota.Backend == nil {
		t.Fatal("fixed, it is not in force")
	}
	good := f.backend
	c = f.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 3, `{name: root, children: [{name: x}, {name: x}]}`))
	if c.Quota != nil || f.backend != good {
		t.Fatal("an invalid tree replaced the last good one")
	}
	if reasonsOf(c.Notices) != "InvalidQuotaTree t" || !strings.Contains(f.problem, "its last valid version stays in force") {
		t.Fatalf("events %s, problem %q", reasonsOf(c.Notices), f.problem)
	}
	// Its status alone changes: nothing is said again.
	if c = f.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 3, `{name: root, children: [{name: x}, {name: x}]}`)); c.Quota != nil || c.Notices != nil {
		t.Fatalf("a change of metadata: %+v", c)
	}
}
