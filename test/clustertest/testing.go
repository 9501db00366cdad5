package clustertest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
	"kube-queue.dev/kube-queue/test/rights"
)

// startTimeout includes the first build of all programs.
const startTimeout = 30 * time.Minute

// ForTest starts a cluster with kube-queue installed and stops it with the test. After a failed
// test the logs are kept, and the test logs their path.
func ForTest(t testing.TB, options Options) *Cluster {
	t.Helper()
	cluster, err := StartInstalled(options)
	require.NoError(t, err)
	t.Cleanup(func() {
		stop := cluster.Stop
		if t.Failed() {
			t.Logf("the cluster's logs are in %s", cluster.Data)
			stop = cluster.StopAndKeep
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// Main runs the tests of a package in one cluster with kube-queue installed. use passes the cluster to them. Call
// Main from TestMain.
func Main(m *testing.M, options Options, use func(*Cluster)) {
	os.Exit(Run(m, options, use))
}

// Run is like Main, but returns the exit status, for packages with their own cleanup.
func Run(m *testing.M, options Options, use func(*Cluster)) int {
	cluster, err := StartInstalled(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	use(cluster)
	code := m.Run()
	stop := cluster.Stop
	if code != 0 {
		fmt.Fprintf(os.Stderr, "the cluster's logs are in %s\n", cluster.Data)
		stop = cluster.StopAndKeep
	}
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// StartInstalled starts a cluster with kube-queue installed.
func StartInstalled(options Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cluster, err := Start(ctx, options)
	if err != nil {
		return nil, err
	}
	cluster.stopped = func() error { return rights.Collect(cluster.AuditLog, os.Getenv(rights.Folder), options.Taken...) }
	err = cluster.InstallCRDs(ctx, options.CRDs...)
	if err == nil && !options.Bare {
		err = cluster.Install(ctx)
	}
	if err != nil {
		if stopErr := cluster.StopAndKeep(); stopErr != nil {
			fmt.Fprintln(os.Stderr, stopErr)
		}
		return nil, fmt.Errorf("%w\nthe cluster's logs are in %s", err, cluster.Data)
	}
	return cluster, nil
}
