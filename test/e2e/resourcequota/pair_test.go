package resourcequota

import (
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/lab"
)

// The story of the demo, with the quota written as a ResourceQuota.
func TestAPairOfTFJobsRunsOneAfterTheOtherUnderAResourceQuota(t *testing.T) {
	l := newLab(t, "default")
	site.BothWith(t, enabled, byResourceQuota)
	l.Apply(l.Read("resource-quota.yaml"))
	l.Apply(l.Read("tfjob-pair.yaml"))

	l.WaitForState(lab.TFJobs, "job2", "Queuing")
	l.WaitForState(lab.TFJobs, "job1", "Running")
	unit := l.WaitForReason("TFJob", "job2", "QuotaExceeded")
	for _, word := range []string{"ResourceQuota default/default", "cpu", "3 asked", "3 of 4 used"} {
		if !strings.Contains(unit.Status.Message, word) {
			t.Errorf("the message %q does not say %q", unit.Status.Message, word)
		}
	}
	for _, name := range []string{"job1", "job2"} {
		l.WaitForPhase("TFJob", name, "Running")
		l.Finish(lab.TFJobs, name)
		l.WaitForPhase("TFJob", name, "Succeeded")
		l.WaitForState(lab.TFJobs, name, "Succeeded")
	}
	l.ExpectOneAfterTheOther("TFJob", "job1", "job2")
}
