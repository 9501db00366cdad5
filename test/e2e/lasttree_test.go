package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/harness"
)

// keptTrees returns the names of the ControllerRevisions that keep the last valid tree.
func keptTrees(t *testing.T) []string {
	t.Helper()
	out, err := suite.Kubectl(t.Context(), "-n", "kube-queue", "get", "controllerrevisions", "-l", "kube-queue/last-valid-tree=true", "-o", "name")
	harness.Must(t, err)
	return strings.Fields(out)
}

// waitForKept waits until one ControllerRevision is kept whose data contains the text, and returns its name.
func waitForKept(t *testing.T, text string) (name string) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, "the tree with "+text+" is kept", func() (bool, string) {
		names := keptTrees(t)
		if len(names) != 1 {
			return false, strings.Join(names, ", ")
		}
		out, err := suite.Kubectl(t.Context(), "-n", "kube-queue", "get", names[0], "-o", "jsonpath={.data}")
		name = names[0]
		return err == nil && strings.Contains(out, text), out
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

// column returns the cell of the only tree in a column of kubectl get.
func column(t *testing.T, name string) string {
	t.Helper()
	out, err := suite.Kubectl(t.Context(), "-n", "kube-system", "get", "elasticquotatree")
	harness.Must(t, err)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, head := range strings.Fields(lines[0]) {
		if cells := strings.Fields(lines[len(lines)-1]); head == name && i < len(cells) {
			return cells[i]
		}
	}
	return "no such column: " + out
}

// An invalid tree never stops a cluster: the last valid one is in force after both programs were killed, the new one
// as soon as the tree is fixed, and none once the tree is deleted.
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

	// The API server refuses to change what is kept, and one that is deleted is restored.
	if out, err := suite.Kubectl(t.Context(), "-n", "kube-queue", "patch", first, "--type=merge", "-p", `{"data":{"spec":{"root":{"max":{"cpu":"99"}}}}}`); err == nil {
		t.Errorf("the data was edited: %s", out)
	}
	_, err := suite.Kubectl(t.Context(), "-n", "kube-queue", "delete", first)
	harness.Must(t, err)
	if again := waitForKept(t, `"cpu":"2"`); again != first {
		t.Errorf("%s is kept as %s", first, again)
	}

	invalid := func() { l.Tree(`{cpu: "-4"}`) }
	invalid()
	waitForInvalid(l, t, "-4 is negative")
	restart(func() {})
	waitForInvalid(l, t, "-4 is negative")
	if valid := column(t, "VALID"); valid != "False" {
		t.Errorf("kubectl get shows %s", valid)
	}
	log, err := os.ReadFile(c.Log.Name())
	harness.Must(t, err)
	last := ""
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "The tree is invalid") {
			last = line
		}
	}
	if !strings.HasPrefix(last, "E") {
		t.Errorf("the last line about the tree in the log is %q", last)
	}
	l.Apply(job{name: "flows", cpu: "2", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "flows", "Running")
	l.Apply(job{name: "waits", cpu: "1", runs: time.Second}.String())
	outside.Apply(job{name: "outside", cpu: "1", runs: time.Second}.String())
	const note = "the last valid quota tree is in force, because ElasticQuotaTree kube-system/elasticquotatree is invalid since "
	for unit, text := range map[string]string{
		l.WaitForReason("Job", "waits", "QuotaExceeded").Status.Message:   "used 2 of max 2; " + note,
		outside.WaitForReason("Job", "outside", "NoQuota").Status.Message: note,
	} {
		if !strings.Contains(unit, text) {
			t.Errorf("the message is %q", unit)
		}
	}

	// Fixed while both are down.
	restart(func() { l.Tree(`{cpu: "3"}`) })
	l.WaitForPhase("Job", "waits", "Succeeded")
	harness.Eventually(t, 20*time.Second, "the unit outside no longer says that the tree is invalid", func() (bool, string) {
		message := outside.Unit("Job", "outside").Status.Message
		return !strings.Contains(message, note), message
	})
	if second := waitForKept(t, `"cpu":"3"`); second == first {
		t.Errorf("both trees are kept as %s", first)
	}
	harness.Eventually(t, 20*time.Second, "kubectl get shows that the tree is valid", func() (bool, string) {
		valid := column(t, "VALID")
		return valid == "True", valid
	})

	// Invalid, killed, and fixed while they run.
	restart(invalid)
	waitForInvalid(l, t, "-4 is negative")
	l.Apply(job{name: "fits-later", cpu: "2", runs: time.Second}.String())
	l.WaitForReason("Job", "fits-later", "QuotaExceeded")
	l.Tree(`{cpu: "4"}`)
	l.WaitForPhase("Job", "fits-later", "Succeeded")
	waitForKept(t, `"cpu":"4"`)

	// Deleted: no quota is in force, and none comes back.
	deleteTree := func() {
		_, err := suite.Kubectl(t.Context(), "-n", "kube-system", "delete", "elasticquotatree", "--all")
		harness.Must(t, err)
	}
	invalid()
	waitForInvalid(l, t, "-4 is negative")
	restart(deleteTree)
	l.Apply(job{name: "after", cpu: "1", runs: time.Second}.String())
	l.WaitForReason("Job", "after", "NoQuota")
	harness.Eventually(t, 20*time.Second, "nothing is kept", func() (bool, string) {
		names := keptTrees(t)
		return len(names) == 0, strings.Join(names, ", ")
	})
	invalid()
	unit := l.WaitForReason("Job", "after", "InvalidQuotaTree")
	if !strings.Contains(unit.Status.Message, "no earlier valid tree is known, so no job is released") {
		t.Errorf("the message is %q", unit.Status.Message)
	}
	l.Tree(`{cpu: "4"}`)
	l.WaitForPhase("Job", "after", "Succeeded")
	l.Finish(harness.Jobs, "flows")
	l.WaitForPhase("Job", "flows", "Succeeded")
	l.ExpectFree()
	l.Allowed = []string{"write-budget"} // a restarted program may repeat writes
}
