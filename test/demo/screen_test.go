package main

import (
	"strings"
	"testing"
	"time"
)

func TestTableOfOneKindHasNoColumnForIt(t *testing.T) {
	var out strings.Builder
	jobs := []job{{named(t, "TFJob"), "job1"}, {named(t, "TFJob"), "job2"}}
	s := layOut(&out, jobs)
	s.head()
	s.show(frame{rows: []row{{job: jobs[0], state: "Running", phase: "Dequeued"}, {job: jobs[1], state: "-", phase: "-"}}})
	s.show(frame{after: 1100 * time.Millisecond, rows: []row{
		{job: jobs[0], state: "Running", phase: "Dequeued"},
		{job: jobs[1], state: "Queuing", phase: "Enqueued", reason: "MaxJobs", message: "one job runs"},
	}})
	want := `TIME     JOB    STATE       UNIT       REASON
    0.0s job1   Running     Dequeued
    0.0s job2   -           -
    1.1s job2   Queuing     Enqueued   MaxJobs: one job runs
`
	if out.String() != want {
		t.Errorf("shown:\n%swant:\n%s", out.String(), want)
	}
}

// mixed returns jobs of two kinds and their first frame.
func mixed(t *testing.T) ([]job, frame) {
	jobs := []job{{named(t, "RayCluster"), "notebook"}, {named(t, "Job"), "pi"}}
	return jobs, frame{rows: []row{
		{job: jobs[0], state: "ready", phase: "Running"},
		{job: jobs[1], state: "SuccessCriteriaMet", phase: "Running", reason: "None"},
	}}
}

func TestKindsAreNamedAndLongStatesCut(t *testing.T) {
	var out strings.Builder
	jobs, first := mixed(t)
	s := layOut(&out, jobs)
	s.head()
	s.show(first)
	s.say("kubectl delete\n")
	want := `TIME     KIND       JOB      STATE        UNIT       REASON
    0.0s RayCluster notebook ready        Running
    0.0s Job        pi       SuccessCrit… Running    None
kubectl delete
`
	if out.String() != want {
		t.Errorf("shown:\n%swant:\n%s", out.String(), want)
	}
}

// terminal simulates a terminal on which lines are overwritten.
type terminal struct{ lines []string }

func (d *terminal) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if rest, up := strings.CutPrefix(line, "\x1b["); up && strings.HasSuffix(rest, "A") {
			rows := 0
			for _, digit := range strings.TrimSuffix(rest, "A") {
				rows = 10*rows + int(digit-'0')
			}
			d.lines = d.lines[:len(d.lines)-rows]
			continue
		}
		d.lines = append(d.lines, strings.TrimSuffix(line, "\x1b[K\n"))
	}
	return len(text), nil
}

func TestTerminalShowsTheLastFrameBelowMessages(t *testing.T) {
	jobs, first := mixed(t)
	out := &terminal{}
	s := layOut(out, jobs)
	s.terminal, s.width = true, func() int { return 60 }
	s.head()
	s.show(first)
	s.say("kubectl delete\n")
	s.say("  it is deleted\n")
	s.show(frame{after: 12 * time.Second, rows: []row{
		{job: jobs[0], state: deleted, phase: "-"},
		{job: jobs[1], state: "Complete", phase: "Succeeded", reason: "AllTheJobsHaveEnded", message: "at last"},
	}})
	want := `kubectl delete
  it is deleted
TIME     KIND       JOB      STATE        UNIT       REASON
   12.0s RayCluster notebook deleted      -
   12.0s Job        pi       Complete     Succeeded  AllThe…`
	if got := strings.Join(out.lines, "\n"); got != want {
		t.Errorf("shown:\n%s\nwant:\n%s", got, want)
	}
}
