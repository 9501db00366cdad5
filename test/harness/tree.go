package harness

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Tree applies a tree with the group team, which has the Env's namespace and this max.
func (l *Env) Tree(max string) {
	l.t.Helper()
	l.TreeOf("{name: team, namespaces: [" + l.Namespace + "], max: " + max + "}")
}

// TreeOf applies a tree with these children.
func (l *Env) TreeOf(children ...string) {
	l.t.Helper()
	tree := l.parse("apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\n" +
		"metadata: {name: elasticquotatree, namespace: kube-system}\n" +
		"spec: {root: {name: root, children: [" + strings.Join(children, ", ") + "]}}\n")[0]
	text := l.asApplied(tree)
	_, err := l.clientOf(tree).Create(l.t.Context(), tree, strict)
	if apierrors.IsAlreadyExists(err) {
		var patch []byte
		patch, err = json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": tree.Object["spec"]},
			{"op": "add", "path": "/metadata/annotations/" + strings.ReplaceAll(corev1.LastAppliedConfigAnnotation, "/", "~1"), "value": text}})
		Must(l.t, err)
		_, err = l.Dynamic.Resource(Trees).Namespace("kube-system").Patch(l.t.Context(), tree.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
	}
	Must(l.t, err)
}

func (l *Env) tree() *unstructured.Unstructured {
	l.t.Helper()
	tree, err := l.Dynamic.Resource(Trees).Namespace("kube-system").Get(l.t.Context(), "elasticquotatree", metav1.GetOptions{})
	Must(l.t, err)
	return tree
}

// ExpectFree waits until no unit in the Env's namespace holds quota, and the status of the tree shows no used quota.
// The status alone may date from before any admission.
func (l *Env) ExpectFree() {
	l.t.Helper()
	l.ExpectNoneHolds()
	Eventually(l.t, 30*time.Second, "the quota is free", l.Free)
}

// ExpectNoneHolds waits until no unit in the Env's namespace holds quota.
func (l *Env) ExpectNoneHolds() {
	l.t.Helper()
	Eventually(l.t, 30*time.Second, "no unit holds quota", func() (bool, string) {
		units, err := l.Queue.SchedulingV1alpha1().QueueUnits(l.Namespace).List(l.t.Context(), metav1.ListOptions{})
		Must(l.t, err)
		for i := range units.Items {
			if unit := &units.Items[i]; unit.Status.Phase.HoldsQuota() {
				return false, unit.Name + " is " + string(unit.Status.Phase)
			}
		}
		return true, ""
	})
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

// TreeValidity returns the validity of the current generation of the tree, from its status.
func (l *Env) TreeValidity() (status, message string) {
	l.t.Helper()
	tree := l.tree()
	if generation, _, _ := unstructured.NestedInt64(tree.Object, "status", "observedGeneration"); generation != tree.GetGeneration() {
		return "", "not looked at yet"
	}
	conditions, _, _ := unstructured.NestedSlice(tree.Object, "status", "conditions")
	for _, c := range conditions {
		if condition := c.(map[string]any); condition["type"] == wellknown.ConditionValid {
			status, _ = condition["status"].(string)
			message, _ = condition["message"].(string)
		}
	}
	return status, message
}

// WaitForTree waits until the status shows that the current generation of the tree is in force.
func (l *Env) WaitForTree() {
	l.t.Helper()
	Eventually(l.t, 20*time.Second, "the tree is in force", func() (bool, string) {
		status, message := l.TreeValidity()
		return status == "True", message
	})
}
