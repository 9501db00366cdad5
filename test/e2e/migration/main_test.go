// Package migration proves that converted setups of Kueue and of ack-kube-queue behave as their own documentation
// promises. Their objects are exported from a cluster or read from files, converted with the kubectl plugin and
// applied, and the same jobs run in the same order.
package migration

import (
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{Nodes: 3, NodeCPU: "32", PodRunTime: harness.UntilFinished}, func(s *harness.Suite) { suite = s })
}
