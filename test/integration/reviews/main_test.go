// Package reviews tests that kube-queue-controller answers reviews only if they come through an API server, and that
// the proof for this is never disclosed. The audit log has everything that the API server can write into it.
package reviews

import (
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{OnlyAPI: true, AuditLevel: "RequestResponse"}, func(s *harness.Suite) { suite = s })
}
