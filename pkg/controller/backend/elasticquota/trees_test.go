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
	"kube-queue.dev/kube-queue/test/require"
)

// treeObject returns a tree as an informer stores it.
func treeObject(t testing.TB, namespace, name string, age time.Duration, generation int64, root string) *unstructured.Unstructured {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {namespace: %s, name: %s, uid: uid-%s, creationTimestamp: %q}
spec: {root: %s}
`, namespace, name, name, time.Unix(1_700_000_000, 0).Add(-age).UTC().Format(time.RFC3339), root)
	object := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object))
	u := &unstructured.Unstructured{Object: object}
	u.SetGeneration(generation)
	return u
}

// noon is the time of the tests.
var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

const goodRoot = `{name: root, namespaces: [a], max: {cpu: 4}}`

func newTestForest(t testing.TB) *forest {
	t.Helper()
	rate, err := resources.ParseRate("1")
	require.NoError(t, err)
	f := newForest(resources.NewNames(), tree.Options{Oversell: rate}, atNoon)
	f.start()
	return f
}

func TestNoTreeIsChosenBeforeAllAreListed(t *testing.T) {
	f := newForest(resources.NewNames(), tree.Options{}, atNoon)
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

func TestAnInvalidTreeInPlaceOfADeletedOneStopsNothing(t *testing.T) {
	f := newTestForest(t)
	f.set("kube-system/old", treeObject(t, "kube-system", "old", 2*time.Hour, 3, goodRoot))
	f.set("kube-system/young", treeObject(t, "kube-system", "young", time.Hour, 1, `{name: root, max: {cpu: -1}}`))
	c := f.set("kube-system/old", nil)
	if c.Quota == nil || c.Quota.Backend == nil || limitOf(c) != 4000 {
		t.Fatalf("the last valid tree is not in force: %+v", c)
	}
	if !strings.Contains(f.problem, "the last valid tree stays in force (generation 3 of kube-system/old, kept as last-valid-tree-") || reasonsOf(c.Notices) != "InvalidQuotaTree young" {
		t.Fatalf("events %s, problem %q", reasonsOf(c.Notices), f.problem)
	}
	// With that one deleted too, no tree is left.
	if c = f.set("kube-system/young", nil); c.Quota == nil || c.Quota.Missing == nil || c.Quota.Missing.Reason != wellknown.ReasonNoQuota {
		t.Fatalf("with all trees deleted: %+v", c)
	}
	if c = f.set("kube-system/new", treeObject(t, "kube-system", "new", 0, 1, `{name: root, max: {cpu: -1}}`)); c.Quota == nil || c.Quota.Missing == nil || c.Quota.Missing.Reason != wellknown.ReasonInvalidQuotaTree {
		t.Fatalf("a tree from before all were deleted is in force: %+v", c)
	}
}

// limitOf returns the max of the root of the quota, in milli-CPU; -1 if there is none.
func limitOf(c backend.Change) int64 {
	if c.Quota == nil || c.Quota.Backend == nil {
		return -1
	}
	return c.Quota.Backend.(*tree.Tree).Usage()[0].Max[0].Value
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
	if message := c.Quota.Missing.Message(); strings.Contains(message, "job") { // the answer about the tree has it too
		t.Errorf("it says %q", message)
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
	c = f.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 3, `{name: root, children: [{name: x}, {name: x}]}`))
	if limitOf(c) != 4000 {
		t.Fatal("an invalid tree replaced the last good one")
	}
	if reasonsOf(c.Notices) != "InvalidQuotaTree t" || !strings.Contains(f.problem, "the last valid tree stays in force (generation 2 of kube-system/t, kept as last-valid-tree-") ||
		!c.Notices[0].IsError {
		t.Fatalf("events %+v, problem %q", c.Notices, f.problem)
	}
	_, refusal := f.backend.Place("x", "")
	if note := `; the last valid quota tree is in force, because ElasticQuotaTree kube-system/t is invalid since 2026-11-25T12:00:00Z: more than one child`; refusal == nil ||
		!strings.Contains(strings.Replace(refusal.Message(), "root/x: ", "", 1), note) {
		t.Fatalf("a unit that the tree does not know shows %+v", refusal)
	}
	// Only its status changes: nothing is reported again.
	if c = f.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 3, `{name: root, children: [{name: x}, {name: x}]}`)); c.Quota != nil || c.Notices != nil {
		t.Fatalf("a change of metadata: %+v", c)
	}
}
