// Package services tests that the API server of the local cluster reaches webhooks and aggregated API
// servers through their Services, to pods and to addresses of an EndpointSlice. Routes, which programs
// without pods have, are tested by test/localcluster and by each test with webhooks; upgrades and a second
// API server by test/e2e/install.
package services

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/test/clustertest"
)

// cluster is the cluster of the running test.
var cluster *clustertest.Cluster

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == serverName {
		fmt.Fprintln(os.Stderr, runServer(os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// patience is much longer than each step needs.
const patience = time.Minute

// eventually waits until the check passes.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// apply applies a manifest.
func apply(t *testing.T, manifest string) {
	t.Helper()
	_, err := cluster.KubectlWith(t.Context(), manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
	must(t, err)
}

// client returns a client of the administrator.
func client(t *testing.T) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(cluster.Config())
	must(t, err)
	return c
}
