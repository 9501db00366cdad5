package resourcequota

import (
	"fmt"
	"testing"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// pauseQuotas pauses kube-controller-manager, and with it the quota controller. TFJobs continue,
// because they do not need it.
func pauseQuotas(t *testing.T) (resume func()) {
	t.Helper()
	again, err := suite.Pause("kube-controller-manager")
	harness.Must(t, err)
	going := false
	resume = func() {
		if !going {
			going = true
			harness.Must(t, again())
		}
	}
	t.Cleanup(resume)
	return resume
}

// While the quota controller is paused, it does not recalculate the used amounts. The API server continues with the
// quota's status, so nothing is released beyond it, and no pod is refused.
func TestReleasesWhileTheQuotaControllerIsSlowOrPaused(t *testing.T) {
	l, late := newEnv(t, "paused"), suite.Part(t, "paused-too")
	l.Apply(quota("team", "cpu: 4"))
	waitForStatus(t, l)
	suite.BothWith(t, enabled, byResourceQuota)
	l.Apply(tfjob("job-0", one("1"), one("2"), false))
	runs(t, l, "TFJob", "job-0")

	// Slow: it is paused each time a job ends.
	for i := range 3 {
		old, next := fmt.Sprintf("job-%d", i), fmt.Sprintf("job-%d", i+1)
		resume := pauseQuotas(t)
		l.Apply(tfjob(next, one("1"), one("2"), false))
		l.WaitForReason("TFJob", next, "QuotaExceeded", "ResourceQuota paused/team", "requested 3, used or reserved 3 of hard limit 4")
		end(l, "TFJob", old)
		// Use the quota that the status shows as free.
		small := fmt.Sprintf("small-%d", i)
		l.Apply(tfjob(small, one("500m"), one("500m"), false))
		runs(t, l, "TFJob", small)
		held(t, l, "TFJob", next)
		end(l, "TFJob", small)
		held(t, l, "TFJob", next)
		resume()
		runs(t, l, "TFJob", next)
	}

	// Paused: a new quota has no status, and the API server admits no pod.
	resume := pauseQuotas(t)
	late.Apply(tfjob("first", one("1"), one("1"), false))
	runs(t, late, "TFJob", "first")
	late.Apply(quota("new", "cpu: 4"))
	waitForQueues(t, "paused-too", "paused-gone") // kube-queue has seen it
	late.Apply(tfjob("second", one("1"), one("1"), false))
	late.WaitForReason("TFJob", "second", "NoQuota", "ResourceQuota paused-too/new", "no status for cpu", "kube-controller-manager")
	held(t, late, "TFJob", "second")
	if phase := late.Unit("TFJob", "first").Status.Phase; phase != schedulingv1alpha1.PhaseRunning {
		t.Errorf("the job that ran before is %s", phase)
	}
	// An increased limit counts once the status shows it.
	l.Patch(harness.ResourceQuotas, "team", `{"spec":{"hard":{"cpu":"9"}}}`)
	l.Apply(tfjob("raised", one("2"), one("2"), false))
	l.WaitForReason("TFJob", "raised", "QuotaExceeded", "requested 4, used or reserved 3 of hard limit 4")
	held(t, l, "TFJob", "raised")

	resume()
	runs(t, late, "TFJob", "second")
	runs(t, l, "TFJob", "raised")
	for _, name := range []string{"job-3", "raised"} {
		end(l, "TFJob", name)
	}
	for _, name := range []string{"first", "second"} {
		end(late, "TFJob", name)
	}
}
