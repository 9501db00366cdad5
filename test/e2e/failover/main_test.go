// Package failover tests two replicas of each program under their leases, on a real
// control plane with the unmodified operator: the leader is killed, frozen and cut off
// while jobs flow.
package failover

import (
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// suite is shared by all tests: they run one after another.
var suite *harness.Suite

// enabled are the kinds that these tests use.
const enabled = "tfjob,job"

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{
		Operators:  []string{"training-operator"},
		PodRunTime: harness.UntilFinished,
	}, func(s *harness.Suite) { suite = s })
}
