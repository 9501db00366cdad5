package autoscaler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

func TestNodesHaveTheResourcesAndLabelsThatThePodsRequest(t *testing.T) {
	s := begin(t)
	s.template("gpu", func(spec *corev1.PodSpec) {
		spec.NodeSelector = map[string]string{"accelerator": "h100", corev1.LabelArchStable: "arm64"}
	}, "cpu", "4", "memory", "8Gi", "nvidia.com/gpu", "8")
	s.template("launcher", nil, "cpu", "500m")
	s.request("train", set("launcher", 1), set("gpu", 2))
	s.answer(Rule{}, Provision())
	s.settle()
	nodes := s.allNodes()
	if len(nodes) != 3 {
		t.Fatalf("%d nodes, want 3", len(nodes))
	}
	for i, want := range []struct {
		capacity corev1.ResourceList
		labels   map[string]string
	}{
		{amounts("cpu", "500m"), map[string]string{corev1.LabelArchStable: "amd64", "accelerator": ""}},
		{amounts("cpu", "4", "memory", "8Gi", "nvidia.com/gpu", "8"), map[string]string{corev1.LabelArchStable: "arm64", "accelerator": "h100"}},
		{amounts("cpu", "4", "memory", "8Gi", "nvidia.com/gpu", "8"), map[string]string{corev1.LabelArchStable: "arm64", "accelerator": "h100"}},
	} {
		node := nodes[i]
		for key, value := range want.labels {
			if node.Labels[key] != value {
				t.Errorf("node %s has label %s=%q, want %q", node.Name, key, node.Labels[key], value)
			}
		}
		if got := len(node.Status.Allocatable); got != len(want.capacity)+1 { // and pods
			t.Errorf("node %s has %d resources: %v", node.Name, got, node.Status.Allocatable)
		}
		for name, amount := range want.capacity {
			if got := node.Status.Allocatable[name]; got.Cmp(amount) != 0 {
				t.Errorf("node %s has %s of %s, want %s", node.Name, got.String(), name, amount.String())
			}
		}
	}
}

func TestEachNodeFitsTheLargestPodSoThatAnyOrderFits(t *testing.T) {
	s := begin(t)
	s.template("master", nil, "cpu", "1", "memory", "4Gi")
	s.template("worker", nil, "cpu", "2", "memory", "1Gi")
	s.request("train", set("master", 1), set("worker", 2))
	s.answer(Rule{}, Provision().PodsOnNode(2))
	s.settle()
	nodes := s.allNodes()
	if len(nodes) != 2 {
		t.Fatalf("%d nodes, want 2", len(nodes))
	}
	for _, node := range nodes {
		for name, want := range amounts("cpu", "4", "memory", "8Gi") {
			if got := node.Status.Allocatable[name]; got.Cmp(want) != 0 {
				t.Errorf("node %s has %s of %s, want %s", node.Name, got.String(), name, want.String())
			}
		}
	}
}
