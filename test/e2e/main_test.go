// Package e2e tests kube-queue whole: its two programs as they are built, as
// their ServiceAccounts, on a real control plane with the unmodified operators and
// simulated nodes. Each test ends with the independent checker of test/audit.
package e2e

import (
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// suite is shared by all tests: they run one after another, each with a quota tree
// of its own, and clean up behind them.
var suite *harness.Suite

// enabled are the kinds that these tests use.
const enabled = "tfjob,pytorchjob,job"

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{
		Operators:  []string{"training-operator"},
		PodRunTime: harness.UntilFinished,
	}, func(s *harness.Suite) { suite = s })
}
