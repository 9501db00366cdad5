package autoscaler

import (
	"context"
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
)

// The module of the types, and the CRD in it.
const (
	crdModule = "k8s.io/autoscaler/cluster-autoscaler/apis"
	crdFile   = "config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml"
)

// InstallCRD installs the CRD of ProvisioningRequests, in the version of the types in go.mod.
func InstallCRD(ctx context.Context, cluster *clustertest.Cluster) error {
	return cluster.InstallModuleCRDs(ctx, crdModule, crdFile)
}

// ForTest installs the CRD, and runs an Autoscaler until the end of the test. It must be the only one
// in the cluster.
func ForTest(t testing.TB, cluster *clustertest.Cluster) *Autoscaler {
	t.Helper()
	if err := InstallCRD(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{Config: cluster.Config()})
	if err != nil {
		t.Fatal(err)
	}
	// The context of the test is done before its cleanup, in which requests may be deleted.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a
}
