// Package reviews tests the reviews of group visibility.kube-queue.dev: their answers, who sees what, and that nothing else
// notices when nobody answers.
package reviews

import (
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{PodRunTime: harness.UntilFinished}, func(s *harness.Suite) { suite = s })
}
