package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	webhooks "kube-queue.dev/kube-queue/extensions/hold/admission"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/test/clustertest"
)

var treeResource = quotav1beta1.SchemeGroupVersion.WithResource("elasticquotatrees")

// tree returns a manifest of a tree with the given root.
func tree(root string) string {
	return "{apiVersion: scheduling.sigs.k8s.io/v1beta1, kind: ElasticQuotaTree, " +
		"metadata: {name: elasticquotatree, namespace: kube-system}, spec: {root: " + root + "}}"
}

// deleteTree removes the tree that a test has applied.
func deleteTree(t *testing.T) {
	t.Cleanup(func() {
		must(t, objects(t).Resource(treeResource).Namespace(quotav1beta1.TreeNamespace).
			Delete(context.Background(), "elasticquotatree", metav1.DeleteOptions{}))
	})
}

// storedTree returns the stored tree.
func storedTree(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	stored, err := objects(t).Resource(treeResource).Namespace(quotav1beta1.TreeNamespace).
		Get(t.Context(), "elasticquotatree", metav1.GetOptions{})
	must(t, err)
	return stored
}

// plain makes values from YAML and from the API comparable: it turns numbers into float64 and removes null fields.
func plain(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	must(t, err)
	var out any
	must(t, json.Unmarshal(data, &out))
	dropNulls(out)
	return out
}

func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, v any) bool { return v == nil })
		for _, v := range value {
			dropNulls(v)
		}
	case []any:
		for _, v := range value {
			dropNulls(v)
		}
	}
}

func wantSameSpec(t *testing.T, written any) {
	t.Helper()
	want, got := plain(t, written), plain(t, storedTree(t).Object["spec"])
	if !reflect.DeepEqual(want, got) {
		wantYAML, _ := yaml.Marshal(want)
		gotYAML, _ := yaml.Marshal(got)
		t.Errorf("written:\n%s\nread back:\n%s", wantYAML, gotYAML)
	}
}

func TestQuotaTreesOfUsersApplyUnchangedAndLoseNothing(t *testing.T) {
	for _, file := range []string{
		"test/acceptance/quota-tree.yaml", "test/acceptance/quota-tree-large.yaml", "test/acceptance/max-jobs.yaml",
		"test/acceptance/one-gpu-tree.yaml", "examples/quota-tree.yaml",
	} {
		for _, how := range []string{"--server-side=false", "--server-side"} {
			t.Run(file+" "+how, func(t *testing.T) {
				path := filepath.Join(cluster.Repository, filepath.FromSlash(file))
				data, err := os.ReadFile(path)
				must(t, err)
				var manifest unstructured.Unstructured
				must(t, yaml.Unmarshal(data, &manifest.Object))
				if items, ok := manifest.Object["items"].([]any); ok {
					manifest.Object = items[0].(map[string]any)
				}

				kubectl(t, "", "apply", how, "-f", path)
				deleteTree(t)
				wantSameSpec(t, manifest.Object["spec"])
				before := storedTree(t).GetResourceVersion()
				kubectl(t, "", "apply", how, "-f", path)
				if after := storedTree(t).GetResourceVersion(); after != before {
					t.Errorf("applied again, it is written again: resourceVersion %s, then %s", before, after)
				}
			})
		}
	}
}

func TestATreeOfNineLevelsLosesNothing(t *testing.T) {
	root := `{name: level-9, namespaces: [nine], min: {cpu: 1}, max: {cpu: 1500m, kube-queue/max-jobs: 3}, attributes: {kube-queue/reclaim: never}, children: null}`
	for level := 8; level >= 1; level-- {
		root = fmt.Sprintf(`{name: level-%d, namespaces: null, min: {cpu: 1, memory: 0M}, max: {cpu: "9", memory: 1Gi}, attributes: {depth: "%d"}, children: [%s, {name: leaf-%d, namespaces: [ns-%d]}]}`,
			level, level, root, level, level)
	}
	kubectl(t, tree(root), "apply", "-f", "-")
	deleteTree(t)

	var written any
	must(t, yaml.Unmarshal([]byte("root: "+root), &written))
	wantSameSpec(t, written)

	client, err := clientset.NewForConfig(cluster.Config())
	must(t, err)
	typed, err := client.QuotaV1beta1().ElasticQuotaTrees(quotav1beta1.TreeNamespace).Get(t.Context(), "elasticquotatree", metav1.GetOptions{})
	must(t, err)
	node, depth := typed.Spec.Root, 1
	for len(node.Children) > 0 {
		node, depth = node.Children[0], depth+1
	}
	if depth != 9 || node.Max.Cpu().MilliValue() != 1500 {
		t.Errorf("the typed client sees %d levels, the last with max %v", depth, node.Max)
	}
}

// withoutTreeWebhook removes the webhook that refuses invalid trees, if any, to test the schema.
func withoutTreeWebhook(t *testing.T) {
	t.Helper()
	if cluster.HoldsBy != clustertest.HoldByWebhook {
		return
	}
	all := core(t).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	found, err := all.Get(t.Context(), webhooks.TreeConfiguration, metav1.GetOptions{})
	must(t, err)
	must(t, all.Delete(t.Context(), found.Name, metav1.DeleteOptions{}))
	t.Cleanup(func() {
		found.ResourceVersion = ""
		_, err := all.Create(context.Background(), found, metav1.CreateOptions{})
		must(t, err)
	})
}

func TestTreesThatTheAPIServerAccepts(t *testing.T) {
	withoutTreeWebhook(t)
	for name, root := range map[string]string{
		"nulls everywhere":          `{name: root, namespaces: null, min: null, max: null, attributes: null, children: null}`,
		"nulls in a child":          `{name: root, children: [{name: a, namespaces: null, min: null, max: null, attributes: null, children: null}]}`,
		"empty lists and maps":      `{name: root, namespaces: [], min: {}, max: {}, attributes: {}, children: []}`,
		"integers and decimals":     `{name: root, max: {cpu: 1, memory: 128974848, nvidia.com/gpu: 0, a.b/c: "1.5"}, min: {cpu: "0.5", memory: 129e6}}`,
		"no name at all":            `{children: [{max: {cpu: 1}}]}`,
		"an empty name":             `{name: ""}`,
		"a name twice":              `{name: root, children: [{name: root}, {name: root}]}`,
		"min above max":             `{name: root, min: {cpu: 2}, max: {cpu: 1}}`,
		"negative quantities":       `{name: root, min: {cpu: -2}, max: {cpu: "-1"}}`,
		"children above their node": `{name: root, max: {cpu: 1}, children: [{name: a, min: {cpu: 1}}, {name: b, min: {cpu: 1}}]}`,
		"a namespace listed twice":  `{name: root, children: [{name: a, namespaces: [x, x]}, {name: b, namespaces: [x, "*"]}]}`,
		// Read the tree without types, because a typed client fails on it.
		"an unreadable quantity at level six": `{children: [{children: [{children: [{children: [{children: [{min: {cpu: 1 GB}}]}]}]}]}]}`,
		"a quantity beyond an int64":          `{name: root, max: {cpu: "99999999999999999999"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, "the tree is accepted", func(ctx context.Context) error { // the API server may call the webhook for another moment
				_, err := cluster.KubectlWith(ctx, tree(root), "apply", "-f", "-")
				return err
			})
			deleteTree(t)
			var written any
			must(t, yaml.Unmarshal([]byte("root: "+root), &written))
			wantSameSpec(t, written)
		})
	}
}

func TestTreesThatTheAPIServerRefuses(t *testing.T) {
	for name, test := range map[string]struct{ root, says string }{
		"an unreadable quantity":               {`{name: root, max: {cpu: many}}`, "spec.root.max.cpu"},
		"an unreadable quantity at level five": {`{children: [{children: [{children: [{children: [{min: {cpu: 1 GB}}]}]}]}]}`, "children[0].min.cpu"},
		"a slip in a field's name":             {`{name: root, childs: []}`, `unknown field "spec.root.childs"`},
		"children that are no list":            {`{name: root, children: {name: a}}`, "spec.root.children"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.KubectlWith(t.Context(), tree(test.root), "create", "-f", "-")
			wantError(t, err, test.says)
		})
	}
}

func TestStatusOfATreeIsWrittenApartFromItsSpec(t *testing.T) {
	kubectl(t, tree(`{name: root, max: {cpu: 4}}`), "apply", "-f", "-")
	deleteTree(t)
	trees := objects(t).Resource(treeResource).Namespace(quotav1beta1.TreeNamespace)
	patch := `{"spec": {"root": {"name": "changed"}}, "status": {"observedGeneration": 1, "nodes": [
		{"path": "root", "used": {"cpu": "1"}, "request": {"cpu": "3"}, "borrowed": {"cpu": "500m"}, "jobs": 2},
		{"path": "root/a", "jobs": 0}],
		"conditions": [{"type": "Valid", "status": "True", "reason": "Valid", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`
	written, err := trees.Patch(t.Context(), "elasticquotatree", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	must(t, err)
	if name, _, _ := unstructured.NestedString(written.Object, "spec", "root", "name"); name != "root" {
		t.Errorf("a write to status has changed the spec: name %q", name)
	}
	nodes, _, _ := unstructured.NestedSlice(written.Object, "status", "nodes")
	if len(nodes) != 2 {
		t.Errorf("status.nodes: %v", nodes)
	}
	if out := kubectl(t, "", "get", "eqtree", "-n", quotav1beta1.TreeNamespace, "-o", "wide"); !strings.Contains(out, "VALID") || !strings.Contains(out, "True") {
		t.Errorf("wide columns: %s", out)
	}
}

// 256 KB is the maximum size of an annotation, and so of objects for client-side kubectl apply.
func TestCRDsCanBeAppliedByAnyMeans(t *testing.T) {
	for _, name := range []string{
		"elasticquotatrees.scheduling.sigs.k8s.io", "queueunits.scheduling.x-k8s.io", "queues.scheduling.x-k8s.io",
		"admissionchecks.scheduling.x-k8s.io", "provisioningrequestconfigs.scheduling.x-k8s.io",
	} {
		crd, err := objects(t).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
			Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		data, err := json.Marshal(crd.Object["spec"])
		must(t, err)
		if len(data) > 256<<10 {
			t.Errorf("%s has %d bytes", name, len(data))
		}
	}
}
