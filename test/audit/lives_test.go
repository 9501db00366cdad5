package audit

import (
	"bytes"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

func TestLives(t *testing.T) {
	s := newScript(t)
	s.tell(goodStory)
	log := s.log()
	first, err := log.Life("TFJob", "default", "first")
	require.NoError(t, err)
	second, err := log.Life("TFJob", "default", "second")
	require.NoError(t, err)
	steps := []Moment{second.Created, first.Ended, second.Dequeued[0], second.Released[0], second.FirstPod, second.Runs[0], second.Ended}
	for i := range steps[1:] {
		if !steps[i].Before(steps[i+1]) {
			t.Errorf("step %d (%v) is not before step %d (%v)", i, steps[i], i+1, steps[i+1])
		}
	}
	if second.Outcome != "Succeeded" || !second.Saw("Running") || second.Saw("Failed") || second.Held != second.Created || len(second.Pods) != 1 {
		t.Errorf("got %+v", second)
	}
	if _, err := log.Life("TFJob", "default", "none"); err == nil {
		t.Error("a job that does not exist has a life")
	}
}

func TestWritesAreCountedByJob(t *testing.T) {
	s := newScript(t)
	s.tell(goodStory)
	table := s.log().Writes()
	want := map[string]int{"first": 6, "second": 6, "third": 5}
	for _, j := range table.Jobs {
		if j.Total() != want[j.Name] {
			t.Errorf("%s cost %d writes, want %d: %v", j.Name, j.Total(), want[j.Name], j.By)
		}
	}
	var out bytes.Buffer
	require.NoError(t, table.Print(&out))
	require.Says(t, "the table", out.String(), "patch tfjobs: release")
}

// A watch may show a job to job-extensions before its creation is answered.
func TestAnEventOfAJobCountsAlthoughItIsOlderThanTheAnswerToItsCreation(t *testing.T) {
	s := newScript(t)
	s.tell("a make job admin {spec: {suspend: true, managedBy: example.com/other}}")
	created := s.entries[0]
	s.tell("a event")
	created["stageTimestamp"] = stamp(s.now)
	table := s.log().Writes()
	if len(table.Jobs) != 1 || table.Jobs[0].OnEvents != 1 {
		t.Errorf("want one job with one event: %+v", table.Jobs)
	}
}
