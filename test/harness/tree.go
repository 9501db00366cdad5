package harness

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Tree applies a tree with one group, the Env's namespace, with this max.
func (l *Env) Tree(max string) {
	l.TreeOf("{name: team, namespaces: [" + l.Namespace + "], max: " + max + "}")
}

// TreeOf applies a tree with these children.
func (l *Env) TreeOf(children ...string) {
	l.t.Helper()
	l.ApplyAsIs("apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\n" +
		"metadata: {name: elasticquotatree, namespace: kube-system}\n" +
		"spec: {root: {name: root, children: [" + strings.Join(children, ", ") + "]}}\n")
}

func (l *Env) tree() *unstructured.Unstructured {
	l.t.Helper()
	tree, err := l.Dynamic.Resource(Trees).Namespace("kube-system").Get(l.t.Context(), "elasticquotatree", metav1.GetOptions{})
	Must(l.t, err)
	return tree
}

// ExpectFree waits until the status of the tree shows no used quota.
func (l *Env) ExpectFree() {
	l.t.Helper()
	Eventually(l.t, 30*time.Second, "the quota is free", l.Free)
}

// Free reports whether the status of the tree shows no used quota.
func (l *Env) Free() (bool, string) {
	l.t.Helper()
	return l.free(func(string) bool { return true })
}

// FreeNode reports whether the status of the node at the path shows no used quota.
func (l *Env) FreeNode(path string) (bool, string) {
	l.t.Helper()
	return l.free(func(node string) bool { return node == path })
}

// free reports whether nodes with these paths exist, and none has used quota.
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

// TreeValidity returns the validity in the status of the current generation of the tree.
func (l *Env) TreeValidity() (status, message string) {
	l.t.Helper()
	tree := l.tree()
	if generation, _, _ := unstructured.NestedInt64(tree.Object, "status", "observedGeneration"); generation != tree.GetGeneration() {
		return "", "not looked at yet"
	}
	return conditionOf(tree, wellknown.ConditionValid)
}

// TreeCondition returns status and message of a condition of the tree; empty if it does not have it.
func (l *Env) TreeCondition(kind string) (status, message string) {
	l.t.Helper()
	return conditionOf(l.tree(), kind)
}

func conditionOf(o *unstructured.Unstructured, kind string) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if condition := c.(map[string]any); condition["type"] == kind {
			status, _ = condition["status"].(string)
			message, _ = condition["message"].(string)
		}
	}
	return status, message
}

// TreeInForce reports whether the status shows that the tree is valid.
func (l *Env) TreeInForce() bool {
	l.t.Helper()
	status, _ := l.TreeValidity()
	return status == "True"
}
