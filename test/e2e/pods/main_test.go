// Package pods tests plain pods and groups of pods, which wait at a scheduling gate.
package pods

import (
	"path/filepath"
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{PodRunTime: harness.UntilFinished, NodeCPU: "2000"}, func(s *harness.Suite) { suite = s })
}

// podsAreQueued installs what the chart adds for pods.
func podsAreQueued(t *testing.T) {
	t.Helper()
	folder := filepath.Join(suite.Repository, "deploy", "pods")
	out, err := suite.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(folder, "rbac"), "-f", filepath.Join(folder, "policies"))
	if err != nil {
		t.Fatal(out, err)
	}
}
