// Package gangs tests a hundred jobs of different sizes that compete for nodes for less than a third of their pods,
// with the two programs, unmodified operators, the real scheduler, and simulated nodes. A checker follows all pods
// and nodes, and fails the test as soon as a gang is partly running.
package gangs

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

const enabled = "job,jobset,pytorchjob,rayjob"

// patience is the timeout for a hundred gangs.
const patience = 5 * time.Minute

var suite *harness.Suite

func TestMain(m *testing.M) {
	options := clustertest.Options{
		Operators: []string{"training-operator", "jobset", "kuberay"}, PodRunTime: harness.UntilFinished,
		// For pods without a GPU.
		NodeCPU: "64", NodeMemory: "256Gi",
	}
	chooseKubernetes(&options)
	harness.Main(m, options, func(s *harness.Suite) { suite = s })
}

// nodeGPUs is the number of GPUs per node. Each pod requests one, so a pod with quota finds a node.
const nodeGPUs = 8

// addNodes adds nodes with GPUs until the end of the test. Call it before Suite.Env, so that the jobs of
// the test are removed before the nodes.
func addNodes(t *testing.T, number int) {
	t.Helper()
	client, err := kubernetes.NewForConfig(suite.Config())
	harness.Must(t, err)
	nodes := client.CoreV1().Nodes()
	const label = "kube-queue.dev/test=gangs"
	t.Cleanup(func() {
		harness.Must(t, nodes.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: label}))
	})
	capacity := corev1.ResourceList{
		"nvidia.com/gpu": *resource.NewQuantity(nodeGPUs, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("100"),
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
	}
	for i := range number {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("gpus-%d", i), Labels: map[string]string{"kube-queue.dev/test": "gangs"}}}
		node.Status.Capacity, node.Status.Allocatable = capacity, capacity
		_, err := nodes.Create(t.Context(), node, metav1.CreateOptions{})
		harness.Must(t, err)
	}
	harness.Eventually(t, time.Minute, "all nodes with GPUs are ready", func() (bool, string) {
		list, err := nodes.List(t.Context(), metav1.ListOptions{LabelSelector: label})
		harness.Must(t, err)
		ready := 0
		for i := range list.Items {
			if usable(&list.Items[i]) {
				ready++
			}
		}
		return ready == number, fmt.Sprint(ready)
	})
}

func usable(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0
		}
	}
	return false
}

// limit applies a tree that limits only the namespace's GPUs, to this number.
func limit(l *harness.Env, gpus int) {
	l.TreeOf(fmt.Sprintf(`{name: %s, namespaces: [%s], max: {nvidia.com/gpu: "%d"}}`, l.Namespace, l.Namespace, gpus))
}
