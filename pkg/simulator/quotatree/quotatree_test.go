package quotatree_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/test/require"
)

func quantities(pairs ...string) map[string]resource.Quantity {
	list := map[string]resource.Quantity{}
	for i := 0; i < len(pairs); i += 2 {
		list[pairs[i]] = resource.MustParse(pairs[i+1])
	}
	return list
}

func job(tenant string, runs time.Duration, requests ...string) simulator.Job {
	return simulator.Job{Namespace: tenant, Runs: runs, Requests: quantities(requests...)}
}

// reported is a tree in a few words.
func describe(n tree.Node) string {
	texts := func(list map[string]resource.Quantity) string {
		var parts []string
		for _, name := range []string{"cpu", "memory", "gpu"} {
			if q, ok := list[name]; ok {
				parts = append(parts, name+" "+q.String())
			}
		}
		return strings.Join(parts, ", ")
	}
	text := fmt.Sprintf("%s %v min(%s) max(%s)\n", n.Name, n.Namespaces, texts(n.Min), texts(n.Max))
	for _, child := range n.Children {
		text += "  " + describe(child)
	}
	return text
}

func TestATreeIsProposedByWhatTenantsUsed(t *testing.T) {
	jobs := []simulator.Job{
		job("a", time.Hour, "gpu", "6"), job("b", 3*time.Hour, "gpu", "1"), job("a", 0, "gpu", "100"), job("tiny", time.Second, "gpu", "1"), job("none", time.Hour),
	}
	for _, c := range []struct {
		kind quotatree.Kind
		jobs []simulator.Job
		max  map[string]resource.Quantity
		want string
	}{
		{quotatree.Single, jobs, quantities("gpu", "10"), "root [] min() max(gpu 10)\n  everybody [a b none tiny] min() max(gpu 10)\n"},
		// 6, 3 and 0.0003 of 9 GPU-hours of 10 GPUs. A tenant gets at least one, or none if it used none.
		{quotatree.Elastic, jobs, quantities("gpu", "10"), "root [] min() max(gpu 10)\n" +
			"  a [a] min(gpu 6) max(gpu 10)\n  b [b] min(gpu 3) max(gpu 10)\n  none [none] min() max(gpu 10)\n  tiny [tiny] min(gpu 1) max(gpu 10)\n"},
		{quotatree.Hard, jobs, quantities("gpu", "10"), "root [] min() max(gpu 10)\n" +
			"  a [a] min(gpu 6) max(gpu 6)\n  b [b] min(gpu 3) max(gpu 3)\n  none [none] min() max()\n  tiny [tiny] min(gpu 1) max(gpu 1)\n"},
		{quotatree.Elastic, []simulator.Job{job("root", time.Hour, "gpu", "1")}, quantities("gpu", "4"),
			"root [] min() max(gpu 4)\n  namespace-root [root] min(gpu 4) max(gpu 4)\n"},
		// The minimum share of the smallest is taken from the largest.
		{quotatree.Elastic, []simulator.Job{job("a", 1000*time.Hour, "gpu", "1"), job("b", time.Second, "gpu", "1"), job("c", time.Second, "gpu", "1")}, quantities("gpu", "3"),
			"root [] min() max(gpu 3)\n  a [a] min(gpu 1) max(gpu 3)\n  b [b] min(gpu 1) max(gpu 3)\n  c [c] min(gpu 1) max(gpu 3)\n"},
		// Large amounts are in whole cores and mebibytes.
		{quotatree.Elastic, []simulator.Job{job("a", time.Hour, "cpu", "1", "memory", "1Gi"), job("b", time.Hour, "cpu", "2", "memory", "2Gi")}, quantities("cpu", "100", "memory", "1Gi"),
			"root [] min() max(cpu 100, memory 1Gi)\n  a [a] min(cpu 33, memory 341Mi) max(cpu 100, memory 1Gi)\n  b [b] min(cpu 66, memory 682Mi) max(cpu 100, memory 1Gi)\n"},
		// More tenants than there are GPUs.
		{quotatree.Hard, []simulator.Job{job("a", time.Hour, "gpu", "1"), job("b", time.Hour, "gpu", "1")}, quantities("gpu", "1"),
			"root [] min() max(gpu 1)\n  a [a] min(gpu 0) max(gpu 0)\n  b [b] min(gpu 1) max(gpu 1)\n"},
	} {
		got := quotatree.Propose(c.kind, c.jobs, c.max)
		if describe(got) != c.want {
			t.Errorf("%s:\n%swant\n%s", c.kind, describe(got), c.want)
		}
	}
}

func TestMinsAreLoweredAndNothingElse(t *testing.T) {
	root := tree.Node{Name: "root", Max: quantities("cpu", "10"), Min: quantities("cpu", "5"), Children: []tree.Node{
		{Name: "a", Namespaces: []string{"a"}, Min: quantities("cpu", "3", "gpu", "3", "memory", "1Gi"), Max: quantities("cpu", "3")}, {Name: "b"}}}
	before := describe(root)
	for percent, want := range map[int]string{
		100: before,
		50:  "root [] min(cpu 2500m) max(cpu 10)\n  a [a] min(cpu 1500m, memory 512Mi, gpu 1) max(cpu 3)\n  b [] min() max()\n",
		0:   "root [] min(cpu 0) max(cpu 10)\n  a [a] min(cpu 0, memory 0, gpu 0) max(cpu 3)\n  b [] min() max()\n",
	} {
		if got := describe(quotatree.WithMins(root, percent)); got != want || describe(root) != before {
			t.Errorf("%d %%:\n%swant\n%s", percent, got, want)
		}
	}
}

func TestAProposedTreeIsAlwaysValid(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var jobs []simulator.Job
		for range r.IntN(30) {
			jobs = append(jobs, job(fmt.Sprintf("tenant-%d", r.IntN(9)), time.Duration(r.Int64N(int64(time.Hour))), "gpu", fmt.Sprint(r.IntN(9)), "cpu", fmt.Sprintf("%dm", r.IntN(5000))))
		}
		for _, kind := range quotatree.Kinds {
			root := quotatree.Propose(kind, jobs, quantities("gpu", fmt.Sprint(r.IntN(20)), "cpu", fmt.Sprintf("%dm", r.IntN(20000))))
			if _, _, err := tree.New(resources.NewNames(), root, tree.Options{}); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, describe(root))
			}
			sameAsWritten(t, root)
		}
	}
}

// sameAsWritten writes a tree, reads it, and expects the same tree.
func sameAsWritten(t *testing.T, root tree.Node) {
	t.Helper()
	text := quotatree.Manifest(root)
	got, err := quotatree.Read(strings.NewReader(text), "written")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if describe(got) != describe(root) || quotatree.Manifest(got) != text {
		t.Fatalf("written\n%sis read as\n%sand was\n%s", text, describe(got), describe(root))
	}
}

func TestAManifestReadsAsTheTreeItWasWrittenOf(t *testing.T) {
	odd := tree.Node{Name: "yes", Namespaces: []string{"*", "123", "1e5", "0x1f", "null", "a-b"}, Max: quantities("cpu", "1500m", "memory", "4Gi"),
		Attributes: map[string]string{"kube-queue/reclaim": "never", "on": "true"},
		Children: []tree.Node{
			{Name: `a "quoted": name # here`, Min: quantities("cpu", "1")},
			{Name: "ünïcode", Children: []tree.Node{{Name: "- below", Namespaces: []string{"x"}}}},
		}}
	sameAsWritten(t, odd)
	got, err := quotatree.Read(strings.NewReader(quotatree.Manifest(odd)), "written")
	if err != nil || !reflect.DeepEqual(got.Attributes, odd.Attributes) || got.Children[0].Name != odd.Children[0].Name {
		t.Errorf("read %+v, error %v", got, err)
	}
}

const one = `
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: elasticquotatree, namespace: kube-system}
spec:
  root:
    name: root
    max: {gpu: 4, cpu: "8"}
    children:
    - {name: leaf, namespaces: [a], children: null}
`

const other = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"

func TestATreeIsFoundInWhateverItIsIn(t *testing.T) {
	indented := strings.ReplaceAll(strings.TrimSpace(one), "\n", "\n  ")
	for name, text := range map[string]string{
		"alone":                  one,
		"among other documents":  "---\n" + other + "---\n" + one + "---\n# nothing\n",
		"in a List":              "apiVersion: v1\nkind: List\nitems:\n- " + indented + "\n- {apiVersion: v1, kind: ConfigMap}\n",
		"in what kubectl prints": "apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTreeList\nitems:\n- " + indented + "\n",
		"as JSON":                `{"apiVersion":"scheduling.sigs.k8s.io/v1beta1","kind":"ElasticQuotaTree","spec":{"root":{"name":"root","max":{"gpu":4,"cpu":"8"},"children":[{"name":"leaf","namespaces":["a"]}]}}}`,
	} {
		got, err := quotatree.Read(strings.NewReader(text), "tree.yaml")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := "root [] min() max(cpu 8, gpu 4)\n  leaf [a] min() max()\n"; describe(got) != want {
			t.Errorf("%s:\n%swant\n%s", name, describe(got), want)
		}
	}
}

func TestAFileWithoutOneTreeIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, text string
		words      []string
	}{
		{"nothing", "", []string{"tree.yaml", "no object", "ElasticQuotaTree"}},
		{"others", other + "---\napiVersion: batch/v1\nkind: Job\n", []string{"no object of kind ElasticQuotaTree", "Namespace (v1)", "Job (batch/v1)"}},
		{"another group", strings.Replace(one, "scheduling.sigs.k8s.io", "example.com", 1), []string{"no object of kind", "ElasticQuotaTree (example.com/v1beta1)"}},
		{"two trees", one + "---\n" + one, []string{"2 objects of kind ElasticQuotaTree"}},
		{"no YAML", "a: b: c", []string{"document 1", "invalid YAML"}},
		{"no object", "- 1\n- 2\n", []string{"document 1", "not a Kubernetes object"}},
		{"no kind", other + "---\nspec: {}\n", []string{"document 2", "not a Kubernetes object"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := quotatree.Read(strings.NewReader(c.text), "tree.yaml")
			require.ErrorSays(t, err, c.words...)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(one))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [null, 3, {kind: List, items: [{}]}]\n"))
	f.Add([]byte("---\n---\n- x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := quotatree.Read(strings.NewReader(string(data)), "tree.yaml")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "tree.yaml") {
				t.Errorf("%q does not name the file", err)
			}
			return
		}
		// The result is a valid tree, or an error that says why it is invalid.
		_, _, _ = tree.New(resources.NewNames(), root, tree.Options{})
	})
}
