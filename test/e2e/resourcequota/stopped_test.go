package resourcequota

import (
	"fmt"
	"testing"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// pauseQuotas has the quota controller stopped, with all of its process: TFJobs go
// on, which need nothing of it.
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

// While the quota controller is stopped nobody recalculates what is used: the API
// server goes on with what the quota's status said, and so nothing is released beyond
// that, so that none of its pods be refused.
func TestTheQuotaControllerIsSlowAndStopsAndIsBack(t *testing.T) {
	l, late := newEnv(t, "paused"), suite.Part(t, "paused-too")
	l.Apply(quota("team", "cpu: 4"))
	waitForStatus(t, l)
	suite.BothWith(t, enabled, byResourceQuota)
	l.Apply(tfjob("job-0", one("1"), one("2"), false))
	runs(t, l, "TFJob", "job-0")

	// Slow: it stops each time a job ends.
	for i := range 3 {
		old, next := fmt.Sprintf("job-%d", i), fmt.Sprintf("job-%d", i+1)
		resume := pauseQuotas(t)
		l.Apply(tfjob(next, one("1"), one("2"), false))
		waits(t, l, "TFJob", next, "QuotaExceeded", "ResourceQuota paused/team", "requested 3, used or reserved 3 of hard limit 4")
		end(l, "TFJob", old)
		// What the status leaves is used.
		small := fmt.Sprintf("small-%d", i)
		l.Apply(tfjob(small, one("500m"), one("500m"), false))
		runs(t, l, "TFJob", small)
		held(t, l, "TFJob", next)
		end(l, "TFJob", small)
		held(t, l, "TFJob", next)
		resume()
		runs(t, l, "TFJob", next)
	}

	// Stopped: a quota that is made meanwhile has no status, and lets no pod in.
	resume := pauseQuotas(t)
	late.Apply(tfjob("first", one("1"), one("1"), false))
	runs(t, late, "TFJob", "first")
	late.Apply(quota("new", "cpu: 4"))
	waitForQueues(t, "paused-too", "paused-gone") // kube-queue has seen it
	late.Apply(tfjob("second", one("1"), one("1"), false))
	waits(t, late, "TFJob", "second", "NoQuota", "ResourceQuota paused-too/new", "no status for cpu", "kube-controller-manager")
	held(t, late, "TFJob", "second")
	if phase := late.Unit("TFJob", "first").Status.Phase; phase != schedulingv1alpha1.PhaseRunning {
		t.Errorf("the job that ran before is %s", phase)
	}
	// One that is raised counts when its status says so.
	l.Patch(harness.ResourceQuotas, "team", `{"spec":{"hard":{"cpu":"9"}}}`)
	l.Apply(tfjob("raised", one("2"), one("2"), false))
	waits(t, l, "TFJob", "raised", "QuotaExceeded", "requested 4, used or reserved 3 of hard limit 4")
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
