package access

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAPodWithoutAUnitNamesTheJobThatHasOne(t *testing.T) {
	for _, c := range []struct {
		metadata map[string]any
		want     string
	}{
		{map[string]any{"labels": map[string]any{"kube-queue/gated": "true", "kube-queue/pod-group": "workers"},
			"annotations": map[string]any{"scheduling.x-k8s.io/suspend": "true", "kube-queue/pod-group-size": "4"}}, "podgroup/workers"},
		{map[string]any{"labels": map[string]any{"kube-queue/gated": "true"}, "annotations": map[string]any{"kube-queue/growth": "main"},
			"ownerReferences": []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "1", "controller": true}}}, "job/train"},
	} {
		c.metadata["name"], c.metadata["namespace"] = "p", "n"
		for _, gates := range [][]any{{map[string]any{"name": "scheduling.x-k8s.io/kube-queue"}}, {}} {
			pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": c.metadata, "spec": map[string]any{"schedulingGates": gates}}}
			if why, _, err := withoutUnit(pod); err != nil || !strings.Contains(why, c.want) {
				t.Errorf("want %s: %q (%v)", c.want, why, err)
			}
		}
	}
}
