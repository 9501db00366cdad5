// Package e2e tests kube-queue whole: its two programs as they are built, as
// their ServiceAccounts, on a real control plane with the unmodified operators and
// simulated nodes. Each test ends with the independent checker of test/audit.
package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/testcluster"
)

// cluster is shared by all tests: they run one after another, each with a quota
// tree of its own, and clean up behind them.
var cluster *testcluster.Cluster

// binaries is the folder of the programs under test.
var binaries string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kube-queue-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaries = dir
	if err := buildPrograms(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := testcluster.Run(m, testcluster.Options{
		Operators:  []string{"training-operator"},
		PodRunTime: 3 * time.Second,
	}, func(c *testcluster.Cluster) { cluster = c })
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func acceptance(file string) string {
	return filepath.Join(cluster.Repository, "test", "acceptance", file)
}
