package frameworks

import (
	"cmp"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// job is one job of a specimen.
type job struct {
	name  string
	runs  time.Duration
	fails bool
}

// short is the run time of a job whose end is tested.
const short = time.Second

// title is the name of the story, and of its namespace.
func (s specimen) title() string { return cmp.Or(s.name, s.extension) }

// story runs the jobs of one specimen in its own namespace with quota for one job. A release there shows that the
// earlier jobs have returned their quota.
type story struct {
	specimen
	*harness.Env
	t *testing.T
}

// tale is the default story. judge checks the lives of its jobs.
func (s *story) tale() {
	s.submit(job{name: "good", runs: harness.UntilFinished})
	unit := s.WaitForPhase(s.kind, "good", v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning)
	s.expectRequests(unit, "good")
	s.waitForRun("good")
	s.WaitForPhase(s.kind, "good", v1alpha1.PhaseRunning)
	s.expectJobsOf("good")

	s.whileQueued()
	if s.endless {
		s.suspendedAndDeleted()
	} else {
		s.endedAndDeleted()
	}
	s.deletedWhileRunning()
	s.expectFree()
}

// whileQueued queues jobs behind the running one. Two of them will run: next, which was submitted first, and bad,
// which has a higher priority.
func (s *story) whileQueued() {
	waiting := []string{"next", "bad", "gone", "left"}
	s.submit(job{name: "next", runs: harness.UntilFinished})
	s.submit(job{name: "bad", runs: short, fails: true})
	s.submit(job{name: "gone", runs: harness.UntilFinished})
	s.submit(job{name: "left", runs: harness.UntilFinished})
	for _, name := range waiting {
		s.expectWaits(name)
	}
	if s.view.ShowsQueuing {
		for _, name := range waiting {
			s.waitForState(name, queuing)
		}
	}
	s.expectNoOtherUnits(append(waiting, "good")...)
	s.expectNoFieldForGangs("next")
	s.prioritize("bad", 7)
	s.delete("gone", background)
	if s.sample.Related.Resource != "" {
		// Trainer makes itself the owner of the JobSet again, in a race with the garbage collector, which removes the
		// owner. So the JobSet may end up with or without an owner.
		s.delete("left", background)
		return
	}
	s.delete("left", orphan)
	s.ClearOrphans("left")
}

// endedAndDeleted: one job succeeds, the next fails, and both are deleted after they have returned their quota.
func (s *story) endedAndDeleted() {
	s.Finish(s.resource, "good")
	s.waitForEnd("good", "Succeeded")
	s.WaitForPhase(s.kind, "good", v1alpha1.PhaseSucceeded)
	s.expectNoneRuns("good")
	s.waitForEnd("bad", "Failed")
	s.WaitForPhase(s.kind, "bad", v1alpha1.PhaseFailed)
	s.expectNoneRuns("bad")
	s.WaitForPhase(s.kind, "next", v1alpha1.PhaseRunning)
	s.delete("good", background)
	s.delete("bad", orphan)
	s.ClearOrphans("bad")
}

// suspendedAndDeleted is for endless kinds: a job returns its quota when it is suspended by hand or deleted.
func (s *story) suspendedAndDeleted() {
	s.suspendByHand("good")
	s.expectSuspendedByUser("good")
	s.WaitForPhase(s.kind, "bad", v1alpha1.PhaseRunning)
	s.delete("bad", background)
	s.WaitForPhase(s.kind, "next", v1alpha1.PhaseRunning)
	s.delete("good", orphan)
	s.ClearOrphans("good")
}

// deletedWhileRunning: next runs. Each waiting job gets the quota of a job that is suspended by hand or deleted, once
// that job's orphans are gone.
func (s *story) deletedWhileRunning() {
	s.submit(job{name: "last", runs: harness.UntilFinished})
	s.expectWaits("last")
	if s.stops() {
		s.suspendByHand("next")
		s.expectSuspendedByUser("next")
		s.expectNoneRuns("next")
		s.WaitForPhase(s.kind, "last", v1alpha1.PhaseRunning)
	}
	s.delete("next", background)
	s.WaitForPhase(s.kind, "last", v1alpha1.PhaseRunning)

	s.submit(job{name: "after", runs: harness.UntilFinished})
	s.expectWaits("after")
	s.deleteRunning("last")
	s.WaitForPhase(s.kind, "after", v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning)
	s.expectReleased("after")
	s.delete("after", background)
}
