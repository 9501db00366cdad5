package resourcequota

import (
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// The jobs of the demo with a ResourceQuota.
func TestAPairOfTFJobsRunsOneAfterTheOtherUnderAResourceQuota(t *testing.T) {
	l := newEnv(t, "default")
	suite.BothWith(t, enabled, byResourceQuota)
	l.Apply(l.Read("resource-quota.yaml"))
	l.Apply(l.Read("tfjob-pair.yaml"))

	l.WaitForState(harness.TFJobs, "job2", "Queuing")
	l.WaitForState(harness.TFJobs, "job1", "Running")
	unit := l.WaitForReason("TFJob", "job2", "QuotaExceeded")
	for _, word := range []string{"ResourceQuota default/default", "cpu", "requested 3", "used or reserved 3 of hard limit 4"} {
		if !strings.Contains(unit.Status.Message, word) {
			t.Errorf("the message %q does not say %q", unit.Status.Message, word)
		}
	}
	for _, name := range []string{"job1", "job2"} {
		l.WaitForPhase("TFJob", name, "Running")
		l.Finish(harness.TFJobs, name)
		l.WaitForPhase("TFJob", name, "Succeeded")
		l.WaitForState(harness.TFJobs, name, "Succeeded")
	}
	l.ExpectOneAfterTheOther("TFJob", "job1", "job2")
}
