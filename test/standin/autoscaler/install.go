package autoscaler

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/require"
)

// The module of the types, and the CRD in it.
const (
	crdModule = "k8s.io/autoscaler/cluster-autoscaler/apis"
	crdFile   = "config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml"
)

// ForTest installs the CRD of ProvisioningRequests, in the version of the types in go.mod, and runs an
// Autoscaler until the end of the test. It must be the only one in the cluster.
func ForTest(t testing.TB, cluster *clustertest.Cluster) *Autoscaler {
	t.Helper()
	require.NoError(t, cluster.InstallModuleCRDs(t.Context(), crdModule, crdFile))
	requests, err := dynamic.NewForConfig(cluster.Config())
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(cluster.Config())
	require.NoError(t, err)
	a := newAutoscaler(requests, kube)
	// The context of the test is done before its cleanup, in which requests may be deleted.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return a
}

// NothingLeft reports whether no request and no pod template of the namespace is left, and no added node.
func (a *Autoscaler) NothingLeft(t testing.TB, namespace string) (bool, string) {
	t.Helper()
	requests, err := a.dynamic.Resource(Resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	templates, err := a.kube.CoreV1().PodTemplates(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	nodes, err := a.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: Label})
	require.NoError(t, err)
	left := []int{len(requests.Items), len(templates.Items), len(nodes.Items)}
	return left[0]+left[1]+left[2] == 0, fmt.Sprintf("%d requests, %d templates, %d nodes", left[0], left[1], left[2])
}
