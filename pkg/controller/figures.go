package controller

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// treeFigures says what the status of the tree that counts should be; nil when
// there is no tree.
func (l *loop) treeFigures() *treeFigures {
	f := l.forest
	if f.chosen == nil {
		return nil
	}
	figures := &treeFigures{namespace: f.chosen.GetNamespace(), name: f.chosen.GetName(), uid: f.chosen.GetUID()}
	figures.shown = statusOf(f.chosen)
	figures.status.ObservedGeneration = f.chosen.GetGeneration()
	figures.status.Conditions = l.validity(figures.shown.Conditions)
	if f.backend == nil {
		return figures
	}
	pending := l.core.Pending()
	for i, usage := range f.backend.Usage() {
		node := quotav1beta1.ElasticQuotaNodeStatus{Path: usage.Path, Jobs: int32(usage.Jobs),
			Used: l.list(usage.Used), Borrowed: l.list(usage.Borrowed)}
		asked := usage.Used
		for _, a := range pending[quota.NodeID(i)] {
			if a.ID != l.reader.jobs {
				used, _ := asked.Get(a.ID)
				asked = asked.With(a.ID, saturate(used, a.Value))
			}
		}
		node.Request = l.list(asked)
		figures.status.Nodes = append(figures.status.Nodes, node)
	}
	return figures
}

func saturate(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return int64(^uint64(0) >> 1)
}

func (l *loop) list(v resources.Vector) corev1.ResourceList {
	if len(v) == 0 {
		return nil
	}
	list := corev1.ResourceList{}
	for name, quantity := range resources.Quantities(l.names, v) {
		list[corev1.ResourceName(name)] = quantity
	}
	return list
}

// validity is the condition Valid; its time changes with its status alone.
func (l *loop) validity(shown []metav1.Condition) []metav1.Condition {
	f := l.forest
	now := metav1.Condition{Type: quotav1beta1.ConditionValid, Status: metav1.ConditionTrue, Reason: reasonInForce,
		Message: "The tree is in force.", ObservedGeneration: f.chosen.GetGeneration()}
	if len(f.warnings) > 0 {
		now.Message = shorten("The tree is in force. Seldom meant so: " + strings.Join(f.warnings, "; "))
	}
	if f.problem != "" {
		now.Status, now.Reason, now.Message = metav1.ConditionFalse, reasonInvalid, shorten(f.problem)
	}
	conditions := slices.Clone(shown)
	apimeta.SetStatusCondition(&conditions, now)
	return conditions
}

// statusOf reads the status that the tree has now; one that cannot be read is as
// good as none.
func statusOf(tree *unstructured.Unstructured) quotav1beta1.ElasticQuotaTreeStatus {
	var read struct {
		Status quotav1beta1.ElasticQuotaTreeStatus `json:"status"`
	}
	text, err := json.Marshal(map[string]any{"status": tree.Object["status"]})
	if err != nil || json.Unmarshal(text, &read) != nil {
		return quotav1beta1.ElasticQuotaTreeStatus{}
	}
	return read.Status
}
