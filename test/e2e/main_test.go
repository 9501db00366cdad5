// Package e2e tests the two programs with their ServiceAccounts on a real control plane with
// unmodified operators and simulated nodes. At the end of each test the audit checker reads the
// audit log.
package e2e

import (
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// suite is shared by all tests. They run one after another, each with its own quota tree, and clean
// up afterwards.
var suite *harness.Suite

// enabled are the kinds that these tests use.
const enabled = "tfjob,pytorchjob,job"

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{
		Operators:  []string{"training-operator"},
		PodRunTime: harness.UntilFinished,
		// The nodes are large enough for stories that run at the same time.
		NodeCPU: "100",
	}, func(s *harness.Suite) { suite = s })
}
