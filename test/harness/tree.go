package harness

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Tree puts a tree of one group in force: the Env's namespace with this max.
func (l *Env) Tree(max string) {
	l.TreeOf("{name: team, namespaces: [" + l.Namespace + "], max: " + max + "}")
}

// TreeOf puts a tree with these children in force.
func (l *Env) TreeOf(children ...string) {
	l.t.Helper()
	l.ApplyAsIs("apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\n" +
		"metadata: {name: elasticquotatree, namespace: kube-system}\n" +
		"spec: {root: {name: root, children: [" + strings.Join(children, ", ") + "]}}\n")
}

func (l *Env) tree() *unstructured.Unstructured {
	l.t.Helper()
	tree, err := l.Dynamic.Resource(trees).Namespace("kube-system").Get(l.t.Context(), "elasticquotatree", metav1.GetOptions{})
	Must(l.t, err)
	return tree
}

// ExpectFree waits until the tree's status says that nothing is used.
func (l *Env) ExpectFree() {
	l.t.Helper()
	Eventually(l.t, 30*time.Second, "the quota is free", l.Free)
}

// Free reports whether the tree's status says that nothing is used.
func (l *Env) Free() (bool, string) {
	l.t.Helper()
	return l.free(func(string) bool { return true })
}

// FreeNode reports the same of one node of the tree, named by its path.
func (l *Env) FreeNode(path string) (bool, string) {
	l.t.Helper()
	return l.free(func(node string) bool { return node == path })
}

// free reports whether there are nodes of these paths, and nothing of them is used.
func (l *Env) free(asked func(path string) bool) (bool, string) {
	l.t.Helper()
	tree := l.tree()
	nodes, _, _ := unstructured.NestedSlice(tree.Object, "status", "nodes")
	found := false
	for _, n := range nodes {
		node := n.(map[string]any)
		if path, _ := node["path"].(string); !asked(path) {
			continue
		}
		found = true
		if used, ok := node["used"].(map[string]any); ok && len(used) > 0 {
			return false, fmt.Sprint(node)
		}
		if jobs, _, _ := unstructured.NestedInt64(node, "jobs"); jobs != 0 {
			return false, fmt.Sprint(node)
		}
	}
	return found, "the tree's status knows no such node"
}

// TreeValidity is what the tree in force says of itself as it is now.
func (l *Env) TreeValidity() (status, message string) {
	l.t.Helper()
	tree := l.tree()
	generation, _, _ := unstructured.NestedInt64(tree.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(tree.Object, "status", "conditions")
	if len(conditions) == 0 || generation != tree.GetGeneration() {
		return "", "not looked at yet"
	}
	condition := conditions[0].(map[string]any)
	status, _ = condition["status"].(string)
	message, _ = condition["message"].(string)
	return status, message
}

// TreeInForce reports whether the tree has been found valid.
func (l *Env) TreeInForce() bool {
	l.t.Helper()
	status, _ := l.TreeValidity()
	return status == "True"
}
