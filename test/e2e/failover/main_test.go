// Package failover tests two replicas of each program with leader election, on a real control plane
// with the unmodified operator. The leader is killed, frozen and disconnected while jobs run.
package failover

import (
	"testing"
	"time"

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
	}, func(s *harness.Suite) {
		suite = s
		suite.StatusInterval = 5 * time.Second // as in production, so that the audit checker can judge it
	})
}
