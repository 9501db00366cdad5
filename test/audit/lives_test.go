package audit

import (
	"bytes"
	"strings"
	"testing"
)

func TestLives(t *testing.T) {
	s := newScript(t)
	goodStory(s)
	log := s.log()
	first, err := log.Life(Options{}, "TFJob", "default", "first")
	if err != nil {
		t.Fatal(err)
	}
	second, err := log.Life(Options{}, "TFJob", "default", "second")
	if err != nil {
		t.Fatal(err)
	}
	if span, both := Overlap(first.Runs, second.Runs); both {
		t.Errorf("both run from %v", span.From)
	}
	third, _ := log.Life(Options{}, "Job", "default", "third")
	if _, both := Overlap(first.Busy, third.Busy); !both {
		t.Error("the first and the third do not overlap")
	}
	steps := []Moment{second.Created, second.Queued, first.Ended, second.Dequeued[0], second.Released[0], second.FirstPod, second.Runs[0].From, second.Ended}
	for i := range steps[1:] {
		if !steps[i].Before(steps[i+1]) {
			t.Errorf("step %d (%v) is not before step %d (%v)", i, steps[i], i+1, steps[i+1])
		}
	}
	if second.Outcome != "Succeeded" || !second.Saw("Running") || second.Saw("Failed") || second.Held != second.Created {
		t.Errorf("got %+v", second)
	}
	if _, err := log.Life(Options{}, "TFJob", "default", "none"); err == nil {
		t.Error("a job that does not exist has a life")
	}
}

func TestWritesAreCountedByJob(t *testing.T) {
	s := newScript(t)
	goodStory(s)
	table, err := s.log().Writes(Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"first": 6, "second": 6, "third": 5}
	for _, j := range table.Jobs {
		if j.Total() != want[j.Name] {
			t.Errorf("%s cost %d writes, want %d: %v", j.Name, j.Total(), want[j.Name], j.By)
		}
	}
	var out bytes.Buffer
	if err := table.Print(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "patch tfjobs: release") {
		t.Errorf("the table does not report the release:\n%s", out.String())
	}
}
