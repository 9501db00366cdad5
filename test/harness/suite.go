// Package harness is the environment of end-to-end tests: a real cluster with kube-queue
// installed, its two programs, run with their ServiceAccounts, and a namespace per test that
// is cleaned up afterwards.
//
// Terms. A Suite is a cluster and the programs to run there. Its tests run one after another,
// because a quota tree applies to the complete cluster. An Env is the environment of one
// test. A Program is one of the two programs, which can be killed and restarted.
//
// At the end of each test, the independent checker of test/audit reads the audit log.
package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// The programs.
const (
	Controller = "kube-queue-controller"
	Extensions = "job-extensions"
)

// Suite is a cluster with kube-queue installed.
type Suite struct {
	*clustertest.Cluster
	// Programs is the folder of the programs under test.
	Programs string
	// Audits are the options of the audit check that most tests use; by default the zero Options.
	Audits []audit.Options
	// reported are the violations found at the end of earlier tests: all tests share one log,
	// and a test only fails for its own violations.
	reported map[string]bool
}

// Main runs the tests of a package that share one suite, which use passes to them. Call it from
// TestMain.
func Main(m *testing.M, options clustertest.Options, use func(*Suite)) {
	os.Exit(Run(m, options, use))
}

// Run is like Main, but returns the exit status, for packages with their own cleanup.
func Run(m *testing.M, options clustertest.Options, use func(*Suite)) int {
	dir, err := os.MkdirTemp("", "kube-queue-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := buildPrograms(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return clustertest.Run(m, options, func(c *clustertest.Cluster) { use(newSite(c, dir)) })
}

func newSite(cluster *clustertest.Cluster, programs string) *Suite {
	return &Suite{Cluster: cluster, Programs: programs, Audits: []audit.Options{{}}, reported: map[string]bool{}}
}

// Builder builds the programs once for several suites that run one after another.
type Builder struct {
	once sync.Once
	err  error
	dir  string
}

// Suite starts a cluster for one test, and stops it with the test.
func (b *Builder) Suite(t testing.TB, options clustertest.Options) *Suite {
	t.Helper()
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "kube-queue-e2e-"); b.err == nil {
			b.err = buildPrograms(t.Context(), b.dir)
		}
	})
	Must(t, b.err)
	return newSite(clustertest.ForTest(t, options), b.dir)
}

// Clean removes the programs.
func (b *Builder) Clean() error {
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir)
}

// buildPrograms builds the programs with the race detector. A race ends the program and fails the
// test.
func buildPrograms(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-race", "-o", dir+string(filepath.Separator),
		"kube-queue.dev/kube-queue/cmd/"+Controller, "kube-queue.dev/kube-queue/cmd/"+Extensions)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	return nil
}

// Acceptance returns the path of a file in test/acceptance.
func (s *Suite) Acceptance(file string) string {
	return filepath.Join(s.Repository, "test", "acceptance", file)
}
