package frameworks

import (
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// preempted returns the specimens whose jobs stop when they are suspended, each with a preemption story behind the
// fence.
func preempted(specimens []specimen) []specimen {
	var all []specimen
	for _, s := range specimens {
		if s.test == nil && s.kind != "Workflow" {
			s.name, s.test, s.fenced = s.extension+"-preempted", (*story).taleOfPreemption, true
			all = append(all, s)
		}
	}
	return all
}

// taleOfPreemption: a production job takes the place of a running development job, which then runs again and ends.
// The fence does not stop the operator from creating, stopping or ending anything.
func (s *story) taleOfPreemption() {
	s.submit(job{name: "dev", runs: harness.UntilFinished})
	dev := s.WaitForPhase(s.kind, "dev", v1alpha1.PhaseRunning)
	s.PatchQueue(dev.Status.Queue, `{"spec":{"preemption":{"withinQueue":"LowerPriority","minRunTime":"0s"}}}`)
	s.submit(job{name: "prod", runs: harness.UntilFinished})
	s.expectWaits("prod")
	s.prioritize("prod", 1000)

	s.WaitForEvent("dev", "Preempted")
	s.WaitForPhase(s.kind, "prod", v1alpha1.PhaseRunning)
	s.expectNoneRuns("dev")
	again := s.WaitForPhase(s.kind, "dev", v1alpha1.PhaseEnqueued)
	if again.Status.EvictedFor != "" || again.Status.Attempts != 1 || !again.Spec.SubmissionTime.Equal(dev.Spec.SubmissionTime) {
		s.t.Errorf("dev waits with %+v, submitted at %v, before at %v", again.Status, again.Spec.SubmissionTime, dev.Spec.SubmissionTime)
	}

	s.delete("prod", background)
	if dev = s.WaitForPhase(s.kind, "dev", v1alpha1.PhaseRunning); dev.Status.Attempts != 2 {
		s.t.Errorf("dev was released %d times, want 2", dev.Status.Attempts)
	}
	if !s.endless {
		s.Finish(s.resource, "dev")
		s.waitForEnd("dev", "Succeeded")
		s.WaitForPhase(s.kind, "dev", v1alpha1.PhaseSucceeded)
	}
	s.delete("dev", background)
	s.expectFree()
}
