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
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/built"
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
	// StatusInterval is the --status-interval of the controller: short, so that no test waits for a status.
	StatusInterval time.Duration
	// mapper knows the resources that are served.
	mapper func() (*restmapper.DeferredDiscoveryRESTMapper, error)
	// reported are the violations found at the end of earlier tests: all tests share one log,
	// and a test only fails for its own violations.
	reported map[string]bool
}

// Main runs the tests of a package that share one suite. use passes the suite to them. Call it from TestMain.
func Main(m *testing.M, options clustertest.Options, use func(*Suite)) {
	os.Exit(Run(m, options, use))
}

// Run is like Main, but returns the exit status, for packages with their own cleanup.
func Run(m *testing.M, options clustertest.Options, use func(*Suite)) int {
	programs, err := buildPrograms(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return clustertest.Run(m, options, func(c *clustertest.Cluster) { use(newSuite(c, programs)) })
}

func newSuite(cluster *clustertest.Cluster, programs string) *Suite {
	mapper := sync.OnceValues(func() (*restmapper.DeferredDiscoveryRESTMapper, error) {
		client, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
		if err != nil {
			return nil, err
		}
		return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), nil
	})
	return &Suite{mapper: mapper, Cluster: cluster, Programs: programs, Audits: []audit.Options{{}}, StatusInterval: 200 * time.Millisecond, reported: map[string]bool{}}
}

// ForTest starts a cluster for one test, and stops it with the test.
func ForTest(t testing.TB, options clustertest.Options) *Suite {
	t.Helper()
	programs, err := buildPrograms(t.Context())
	Must(t, err)
	return newSuite(clustertest.ForTest(t, options), programs)
}

// buildPrograms builds the programs with the race detector. A race ends the program and fails the
// test.
func buildPrograms(ctx context.Context) (folder string, err error) {
	const cmd = "kube-queue.dev/kube-queue/cmd/"
	return built.Programs(ctx, ".", "-race", cmd+Controller, cmd+Extensions)
}

// mapping returns the resource of a kind.
func (s *Suite) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapper, err := s.mapper()
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// Acceptance returns the path of a file in test/acceptance.
func (s *Suite) Acceptance(file string) string {
	return filepath.Join(s.Repository, "test", "acceptance", file)
}

// AnswersReviews makes a controller that has not been started answer reviews, and returns the address.
func (s *Suite) AnswersReviews(t testing.TB, controller *Program) (address string) {
	t.Helper()
	address, args, err := s.RouteReviews(t.Context())
	Must(t, err)
	controller.Args = append(controller.Args, args...)
	return address
}
