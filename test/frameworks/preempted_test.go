package frameworks

import (
	"slices"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// preemptedToo returns the specimens, and each once more with a story of preemption if its jobs stop when they
// are suspended.
func preemptedToo(specimens []specimen) []specimen {
	all := slices.Clone(specimens)
	for _, s := range specimens {
		if s.test == nil && !s.fenced && s.kind != "Workflow" {
			s.name, s.test = s.extension+"-preempted", (*story).taleOfPreemption
			all = append(all, s)
		}
	}
	return all
}

// taleOfPreemption: a production job takes the place of a running development job, which runs again afterwards.
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
	s.delete("dev", background)
	s.expectFree()
}

func TestPreemptedToo(t *testing.T) {
	of := preemptedToo([]specimen{{kind: "Job", extension: "job"}, {kind: "Job", extension: "job", fenced: true}, {kind: "Workflow", extension: "workflow"}})
	if len(of) != 4 || of[3].title() != "job-preempted" {
		t.Errorf("specimens are %+v", of)
	}
}
