package e2e

import (
	"fmt"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// The borrower has borrowed everything. The owner gets its min back, and no more.
func aQuotaGetsBackWhatItHasLent(t *testing.T, l *harness.Env) {
	l.TreeOf(`{name: reclaimed, max: {cpu: "4"}, children: [
		{name: owner, namespaces: [reclaimed], min: {cpu: "2"}}, {name: borrower, namespaces: [reclaimed], min: {cpu: "2"}}]}`)
	l.PatchQueue("root-reclaimed-borrower", `{"spec":{"preemption":{"minRunTime":"0s"}}}`)
	of := func(quota string) string { return "kube-queue/quota-name: " + quota }
	for i := range 4 {
		name := fmt.Sprint("borrows-", i)
		l.Apply(job{name: name, cpu: "1", runs: harness.UntilFinished, labels: of("borrower")}.String())
		l.WaitForPhase("Job", name, "Running")
	}
	l.Apply(job{name: "owed", cpu: "2", runs: harness.UntilFinished, labels: of("owner")}.String())
	for _, name := range []string{"borrows-2", "borrows-3"} { // which started last
		if event := l.WaitForEvent(name, "Reclaimed"); !strings.Contains(event.Message, "quota root/reclaimed/borrower has borrowed what is guaranteed to another quota") {
			t.Errorf("the event says %s", event.Message)
		}
	}
	l.WaitForPhase("Job", "owed", "Running")
	for _, name := range []string{"borrows-2", "borrows-3"} {
		l.WaitForPhase("Job", name, "Enqueued")
		l.WaitForReason("Job", name, "QuotaExceeded")
	}
	for _, name := range []string{"borrows-0", "borrows-1"} {
		if unit := l.Unit("Job", name); unit.Status.Phase != "Running" {
			t.Errorf("%s is %s", name, unit.Status.Phase)
		}
	}
	l.Finish(harness.Jobs, "owed")
	for i := range 4 {
		name := fmt.Sprint("borrows-", i)
		l.WaitForPhase("Job", name, "Running")
		l.Finish(harness.Jobs, name)
		l.WaitForPhase("Job", name, "Succeeded")
	}
	l.ExpectFree()
}
