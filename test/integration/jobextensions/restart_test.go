package jobextensions

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// The next job-extensions process finds all changes in the objects, and repeats nothing.
func TestARestartFindsEverythingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	c := inTurn(t)
	stop := startFor(t, c, "job")
	waits := begin(t, c, batchJob, annotated)
	unit := waits.enqueued()
	waits.refuse("QuotaExceeded", "full")
	waits.event(corev1.EventTypeNormal, "Queued", "full")
	runs := begin(t, c, batchJob, annotated, long)
	runs.admit()
	runs.inPhase(v1alpha1.PhaseRunning)
	admittedMeanwhile, orphaned := begin(t, c, batchJob, annotated, long), begin(t, c, batchJob, annotated)
	admittedMeanwhile.enqueued()
	orphaned.enqueued()
	stop()

	before := runs.writes()
	admittedMeanwhile.admit()
	orphaned.must(orphaned.jobs.Delete(t.Context(), "a", deleteOrphaning()))
	madeMeanwhile := begin(t, c, batchJob, annotated)
	stop = startFor(t, c, "job")
	defer stop()
	madeMeanwhile.enqueued()
	admittedMeanwhile.becomesSuspended(false)
	orphaned.hasNoUnit()
	if again := waits.unit(); again == nil || again.UID != unit.UID || !waits.suspended() || len(waits.events()) != 1 {
		t.Errorf("the waiting job was touched: %v, %v", again, waits.events())
	}
	if after := runs.writes(); after.Total() != before.Total() || after.Failed != before.Failed {
		t.Errorf("the running job was written to: %v", after.By)
	}
}
