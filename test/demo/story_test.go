package main

import (
	"strings"
	"testing"
)

// expect checks that an error contains a text, or that there is no error if the text is empty.
func expect(t *testing.T, err error, part string) {
	t.Helper()
	switch {
	case err == nil && part != "":
		t.Errorf("no error, want %q", part)
	case err != nil && (part == "" || !strings.Contains(err.Error(), part)):
		t.Errorf("error %q, want %q", err, part)
	}
}

func TestStoryEndsWellIfEachJobHasSucceeded(t *testing.T) {
	pi, cluster := job{named(t, "Job"), "pi"}, job{named(t, "RayCluster"), "notebook"}
	done := row{job: pi, state: "Complete", end: "Succeeded", phase: "Succeeded"}
	ready, gone := row{job: cluster, state: "ready", phase: "Running"}, row{job: cluster, state: deleted, phase: "-"}
	for _, c := range []struct {
		name  string
		story story
		want  string
	}{
		{"no state of the jobs was seen", nil, "no state of the jobs was seen"},
		{"all ended", story{{rows: []row{done, ready}}, {rows: []row{done, gone}}}, ""},
		{"one failed", story{{rows: []row{{job: pi, state: "Failed", phase: "Failed"}}}}, "Job pi failed; run kubectl describe job/pi"},
		{"one runs on", story{{rows: []row{{job: pi, state: "Running", phase: "Running"}}}}, "Job pi has not ended"},
		{"one was deleted by somebody", story{{rows: []row{{job: pi, state: deleted, phase: "-"}}}}, "Job pi was deleted"},
		{"an endless one never ran", story{{rows: []row{gone}}}, "RayCluster notebook was deleted before it ran"},
		{"an endless one runs on", story{{rows: []row{ready}}}, "RayCluster notebook has not ended"},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, c.story.endedWell(), c.want) })
	}
}

func TestSomeJobsWaitAndOthersDoNot(t *testing.T) {
	one, two := job{named(t, "Job"), "pi"}, job{named(t, "RayJob"), "tune"}
	waits := func(j job) row { return row{job: j, phase: "Enqueued", reason: "QuotaExceeded", cpu: "1"} }
	runs := func(j job) row { return row{job: j, phase: "Running", cpu: "1"} }
	for _, c := range []struct {
		name  string
		story story
		want  string
	}{
		{"one waits", story{{rows: []row{runs(one), waits(two)}}, {rows: []row{runs(one), runs(two)}}}, ""},
		{"none waits", story{{rows: []row{runs(one), runs(two)}}}, "no job waited for quota"},
		{"all wait", story{{rows: []row{waits(one), waits(two)}}}, "all jobs waited for quota"},
		{"one requests nothing", story{{rows: []row{runs(one), {job: two, phase: "Running"}}}}, "RayJob tune requested no cpu"},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, c.story.someWaited(), c.want) })
	}
}

func TestRequestIsKnownAfterTheUnitIsDeleted(t *testing.T) {
	cluster := job{named(t, "RayCluster"), "notebook"}
	s := story{{rows: []row{{job: cluster}}}, {rows: []row{{job: cluster, cpu: "3", memory: "4Gi"}}}, {rows: []row{{job: cluster}}}}
	if cpu, memory := s.requested(cluster); cpu != "3" || memory != "4Gi" {
		t.Errorf("%q cpu and %q", cpu, memory)
	}
}
