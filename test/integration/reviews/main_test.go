// Package reviews tests that kube-queue-controller answers reviews only if they come through an API server, and that what
// proves it is seen by nobody. The audit log has everything that the API server writes into it.
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
