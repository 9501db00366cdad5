package manifest

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
)

// Oldest returns the oldest tree in namespace kube-system, which is the one in use; nil if there is
// none.
func Oldest(trees []*unstructured.Unstructured) *unstructured.Unstructured {
	var oldest *unstructured.Unstructured
	for _, t := range trees {
		if t.GetNamespace() == quotav1beta1.TreeNamespace && (oldest == nil || older(t, oldest)) {
			oldest = t
		}
	}
	return oldest
}

func older(a, b *unstructured.Unstructured) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if !at.Equal(&bt) {
		return at.Before(&bt)
	}
	return a.GetName() < b.GetName()
}

// Status returns the current status of a tree. It is empty if it cannot be read.
func Status(tree *unstructured.Unstructured) quotav1beta1.ElasticQuotaTreeStatus {
	var read struct {
		Status quotav1beta1.ElasticQuotaTreeStatus `json:"status"`
	}
	text, err := json.Marshal(map[string]any{"status": tree.Object["status"]})
	if err != nil || json.Unmarshal(text, &read) != nil {
		return quotav1beta1.ElasticQuotaTreeStatus{}
	}
	return read.Status
}
