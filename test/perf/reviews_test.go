package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/testmode"
)

// TestRunReviews checks counts only, because durations depend on the machine.
func TestRunReviews(t *testing.T) {
	testmode.OnlyInTestAll(t, "it tests a measurement, and TestRunUnits tests the rig that all measurements share")
	r := startRig(t, rig.Options{OnlyAPI: true, WithoutPolicies: true})
	flags := &reviewsFlags{units: 300, nodes: 20, rounds: 2, during: 2 * time.Second, rate: 10}
	figures, err := flags.run(t.Context(), r, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	// 300, 20 in each of four windows, and 7 in each of two, rounded up to as many in each of 18 queues.
	const units = 396
	expect(t, figures, "cluster", "units", units)
	expect(t, figures, "cluster", "queues", 18)
	expect(t, figures, "cluster", "units that hold quota at a time", 36)
	const content = "content of the first answers"
	expect(t, figures, content, "units selected in all queues", units)
	expect(t, figures, content, "nodes listed", 20)
	expect(t, figures, content, "nodes of the quota tree", 20)
	positive(t, figures, content, "units waiting in the queue of a unit", "position of the unit", "groups of units", "groups listed")
	const paced, fast = "releases, 10 units end in a second", "releases, units end as fast as possible"
	for _, section := range []string{paced, fast} {
		positive(t, figures, section, "without questions", "with questions", "rate with questions")
	}
	for rate, windows := range map[string]float64{"10 units end in a second": 2, "units end as fast as possible": 1} {
		for _, kind := range []string{"QueueUnitReview", "QueueReview", "QuotaReview"} {
			positive(t, figures, kind+", "+rate, "measured", "max", "largest answer")
		}
		for _, name := range []string{"list -A", "tree", "why JOB"} {
			expect(t, figures, "kubectl kube-queue "+name+", "+rate, "measured", windows) // once in each window with questions
			positive(t, figures, "kubectl kube-queue "+name+", "+rate, "max", "largest answer")
		}
	}
	ended, released := figures.Find("in the end", "units ended"), figures.Find("in the end", "units released")
	if ended == nil || ended.Value < 1 || ended.Value > 4*20+2*7 || released == nil || released.Value > ended.Value+36 {
		t.Errorf("%+v end and %+v are released", ended, released)
	}
}

func TestReviewsRejectsWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"--nodes=2"}, {"--units=999"}, {"--rounds=0"}, {"--for=1ms"}, {"--rate=0"}, {"--pause=-1s"}} {
		var errors strings.Builder
		if code := run(t.Context(), append([]string{"reviews"}, args...), world{out: io.Discard, err: &errors}); code != 2 {
			t.Errorf("%v: status %d, want 2: %s", args, code, errors.String())
		}
	}
}
