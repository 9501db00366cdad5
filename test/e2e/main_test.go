// Package e2e tests kube-queue whole: its two programs as they are built, as
// their ServiceAccounts, on a real control plane with the unmodified operators and
// simulated nodes. Each test ends with the independent checker of test/audit.
package e2e

import (
	"testing"

	"kube-queue.dev/kube-queue/test/lab"
	"kube-queue.dev/kube-queue/test/testcluster"
)

// site is shared by all tests: they run one after another, each with a quota tree
// of its own, and clean up behind them.
var site *lab.Site

// enabled are the kinds that these tests use.
const enabled = "tfjob,pytorchjob,job"

func TestMain(m *testing.M) {
	lab.Main(m, testcluster.Options{
		Operators:  []string{"training-operator"},
		PodRunTime: lab.UntilTold,
	}, func(s *lab.Site) { site = s })
}
