package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/harness"
)

// After the programs and then all objects are removed, unmarked jobs are created and run as usual.
func TestWithKubeQueueRemovedUnmarkedJobsRunAsUsual(t *testing.T) {
	l := suite.Env(t, "after")
	run := func(name string) {
		t.Helper()
		plain := harness.Job{Name: name, CPU: "1", Runs: time.Second, Unheld: true}.String()
		l.Apply(plain + harness.TFJob{Name: name + "-tf", Servers: 1, Workers: 1, CPU: "1", Runs: time.Second, Unheld: true}.String())
		harness.Eventually(t, time.Minute, name+" is Complete", func() (bool, string) { return l.HasCondition(harness.Jobs, name, "Complete"), "it is not" })
		l.WaitForState(harness.TFJobs, name+"-tf", "Succeeded")
	}
	run("programs-gone")

	deploy := filepath.Join(suite.Repository, "deploy")
	for _, folder := range []string{"policies", "rbac"} {
		out, err := suite.Kubectl(t.Context(), "delete", "--ignore-not-found", "-f", filepath.Join(deploy, folder))
		if err != nil {
			t.Fatal(err, out)
		}
	}
	run("policies-gone")
	out, err := suite.Kubectl(t.Context(), "delete", "--ignore-not-found", "-f", filepath.Join(deploy, "crds"))
	if err != nil {
		t.Fatal(err, out)
	}
	run("all-gone")
	harness.Must(t, suite.Install(t.Context())) // and it can be installed again
}
