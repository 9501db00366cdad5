package frameworks

import (
	"fmt"
	"testing"

	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/harness"
)

// fate is the expected life of a job of the story.
type fate struct {
	job      string
	released bool
	outcome  string
	// waited: it was queued behind another job.
	waited bool
}

func (s specimen) fates() []fate {
	fates := []fate{
		{job: "good", released: true, outcome: "Succeeded"},
		{job: "bad", released: true, outcome: "Failed", waited: true},
		{job: "next", released: true, waited: true},
		{job: "last", released: true, waited: true},
		{job: "after", released: true, waited: true},
		{job: "gone", waited: true},
		{job: "left", waited: true},
	}
	if s.endless {
		fates[0].outcome, fates[1].outcome = "", ""
	}
	return fates
}

// judge checks the lives of the jobs of all stories in the audit log, and that each check had cases. The laws are
// checked when the cluster stops.
func (s *scene) judge(t *testing.T, f framework) {
	log := s.whole.For(t).Log(t.Context())
	lives := log.Lives()
	for _, specimen := range f.specimens {
		if specimen.test == nil {
			specimen.judgeLives(t, lives)
		}
	}
	report, err := log.Check(audit.Options{})
	harness.Must(t, err)
	for _, c := range report.Checks {
		// These stories have no evictions, and the programs run without leader election.
		if c.Checked == 0 && c.Name != "early-return" && c.Name != "two-leaders" {
			t.Errorf("the checker found nothing to judge for %q", c.Name)
		}
	}
}

// livesOf returns the lives of the jobs in the specimen's story, by name.
func (s specimen) livesOf(lives []audit.Life) map[string]audit.Life {
	found := map[string]audit.Life{}
	for _, life := range lives {
		if life.Kind == s.kind && life.Namespace == s.title() {
			found[life.Name] = life
		}
	}
	return found
}

func (s specimen) judgeLives(t *testing.T, lives []audit.Life) {
	found := s.livesOf(lives)
	for _, fate := range s.fates() {
		life, there := found[fate.job]
		if !there {
			t.Errorf("the audit log knows no %s %s", s.kind, fate.job)
			continue
		}
		for _, wrong := range fate.differences(life) {
			t.Errorf("%s: %s", life, wrong)
		}
		if fate.waited && s.view.ShowsQueuing && !life.Saw(queuing) {
			t.Errorf("%s was never shown as %s", life, queuing)
		}
	}
	if bad, next := found["bad"], found["next"]; len(bad.Dequeued) > 0 && len(next.Dequeued) > 0 && !bad.Dequeued[0].Before(next.Dequeued[0]) {
		t.Errorf("%s of priority 7 was released after %s of priority 0", bad, next)
	}
}

// differences returns how the life of a job differs from the expected life.
func (f fate) differences(life audit.Life) []string {
	var wrong []string
	expect := func(is bool, format string, args ...any) {
		if !is {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	expect(!life.Held.IsZero() && life.Held == life.Created, "it was held at %v, and created at %v", life.Held, life.Created)
	expect(life.Unit != "", "it had no unit")
	expect(life.Outcome == f.outcome, "its outcome is %q, want %q", life.Outcome, f.outcome)
	if !f.released {
		expect(len(life.Dequeued)+len(life.Released) == 0, "it was released, though deleted in the queue")
		expect(life.FirstPod.IsZero(), "it had a pod, though deleted in the queue")
		return wrong
	}
	if len(life.Dequeued) != 1 || len(life.Released) != 1 {
		return append(wrong, fmt.Sprintf("it was dequeued %d times and released %d times, want once", len(life.Dequeued), len(life.Released)))
	}
	expect(life.Dequeued[0].Before(life.Released[0]), "it was released before its unit was dequeued")
	expect(life.FirstPod.IsZero() || life.Released[0].Before(life.FirstPod), "it had a pod before its release")
	if f.job != "after" { // it is deleted immediately after its release
		expect(!life.FirstPod.IsZero(), "it never had a pod")
	}
	if f.job == "good" {
		expect(len(life.Runs) > 0, "its operator never said that it runs")
	}
	return wrong
}
