// Package pods tests plain pods and groups of pods, which wait at a scheduling gate.
package pods

import (
	"testing"

	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{PodRunTime: harness.UntilFinished, NodeCPU: "2000"}, func(s *harness.Suite) {
		suite = s
		suite.Audits = append(suite.Audits, audit.Options{}, audit.Options{ResourceQuota: true}) // tests use both
	})
}
