// Package failover tests two replicas of each program under their leases, on a real
// control plane with the unmodified operator: the leader is killed, frozen and cut off
// while jobs flow.
package failover

import (
	"testing"

	"kube-queue.dev/kube-queue/test/lab"
	"kube-queue.dev/kube-queue/test/testcluster"
)

// site is shared by all tests: they run one after another.
var site *lab.Site

// enabled are the kinds that these tests use.
const enabled = "tfjob,job"

func TestMain(m *testing.M) {
	lab.Main(m, testcluster.Options{
		Operators:  []string{"training-operator"},
		PodRunTime: lab.UntilTold,
	}, func(s *lab.Site) { site = s })
}
