package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/require"
)

// waitForKept waits until one ControllerRevision keeps a valid tree and its data contains the text, and returns its name.
func waitForKept(t *testing.T, text string) (name string) {
	t.Helper()
	kept := func(output string) string {
		out, err := suite.Kubectl(t.Context(), "-n", "kube-queue", "get", "controllerrevisions", "-l", "kube-queue/last-valid-tree=true", "-o", output)
		harness.Must(t, err)
		return strings.TrimSpace(out)
	}
	harness.Eventually(t, 20*time.Second, "the tree with "+text+" is kept", func() (bool, string) {
		name = kept("name")
		data := kept("jsonpath={.items[*].data}")
		return name != "" && !strings.Contains(name, "\n") && strings.Contains(data, text), name + ": " + data
	})
	return name
}

func waitForInvalid(l *harness.Env, t *testing.T, fault string) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, "the tree is invalid", func() (bool, string) {
		status, message := l.TreeValidity()
		return status == "False" && strings.Contains(message, fault) && strings.Contains(message, "the last valid tree stays in force (generation"), status + " " + message
	})
}

// An invalid tree never stops a cluster: the last valid one stays in force even after both programs were killed, and
// the new one takes over when it is fixed.
func TestTheLastValidTreeIsInForceAfterBothProgramsRestart(t *testing.T) {
	l := suite.Env(t, "kept")
	outside := suite.Part(t, "kept-outside")
	c, x := suite.Both(t, enabled)
	restart := func(change func()) {
		c.Kill()
		x.Kill()
		change()
		x.Start()
		c.Start()
	}
	l.Tree(`{cpu: "2"}`)
	first := waitForKept(t, `"cpu":"2"`)

	// The API server refuses changes of the kept tree, and a deleted one is restored.
	if out, err := suite.Kubectl(t.Context(), "-n", "kube-queue", "patch", first, "--type=merge", "-p", `{"data":{"spec":{"root":{"max":{"cpu":"99"}}}}}`); err == nil {
		t.Errorf("the data was edited: %s", out)
	}
	_, err := suite.Kubectl(t.Context(), "-n", "kube-queue", "delete", first)
	harness.Must(t, err)
	if again := waitForKept(t, `"cpu":"2"`); again != first {
		t.Errorf("%s is kept as %s", first, again)
	}

	l.Tree(`{cpu: "-4"}`)
	waitForInvalid(l, t, "-4 is negative")
	logged := func() string {
		log, err := os.ReadFile(c.Log.Name())
		harness.Must(t, err)
		return string(log)
	}
	before := 0
	restart(func() { before = len(logged()) })
	harness.Eventually(t, 20*time.Second, "the next process logs the error that the tree is invalid", func() (bool, string) {
		for line := range strings.Lines(logged()[before:]) {
			if strings.HasPrefix(line, "E") && strings.Contains(line, "The tree is invalid") {
				return true, ""
			}
		}
		return false, "see " + c.Log.Name()
	})
	waitForInvalid(l, t, "-4 is negative")
	l.Apply(harness.Job{Name: "flows", CPU: "2", Runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "flows", "Running")
	l.Apply(harness.Job{Name: "waits", CPU: "1", Runs: time.Second}.String())
	outside.Apply(harness.Job{Name: "outside", CPU: "1", Runs: time.Second}.String())
	const note = "the last valid quota tree is in force, because ElasticQuotaTree kube-system/elasticquotatree is invalid since "
	for unit, text := range map[string]string{
		l.WaitForReason("Job", "waits", "QuotaExceeded").Status.Message:   "used 2 of max 2; " + note,
		outside.WaitForReason("Job", "outside", "NoQuota").Status.Message: note,
	} {
		require.Says(t, "the unit", unit, text)
	}

	// The tree is fixed while both programs are down.
	restart(func() { l.Tree(`{cpu: "3"}`) })
	l.WaitForPhase("Job", "waits", "Succeeded")
	harness.Eventually(t, 20*time.Second, "the unit outside no longer says that the tree is invalid", func() (bool, string) {
		message := outside.Unit("Job", "outside").Status.Message
		return !strings.Contains(message, note), message
	})
	if second := waitForKept(t, `"cpu":"3"`); second == first {
		t.Errorf("both trees are kept as %s", first)
	}
	l.WaitForTree()

	l.Finish(harness.Jobs, "flows")
	l.WaitForPhase("Job", "flows", "Succeeded")
	l.ExpectFree()
	l.Allowed = []string{"write-budget"} // a restarted program may repeat writes
}
