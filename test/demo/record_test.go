package main

import (
	"strings"
	"testing"
)

func TestARecordingHasTheSeriesOfEachInstance(t *testing.T) {
	r := recording{}
	for scrape, answer := range []string{
		"# HELP kube_queue_leader 1\nkube_queue_leader 1\nkube_queue_used{node=\"a b\"} 1.5e+09\nkube_queue_wait_sum 3\ngo_threads 4\n",
		"kube_queue_leader 0\n",
	} {
		for line := range strings.Lines(answer) {
			r.add(scrape, "c", strings.TrimSpace(line))
		}
	}
	rest := strings.Repeat(" stale", scrapes-2) + "\n"
	want := `kube_queue_leader{instance="c"} 1 0` + rest + `kube_queue_used{node="a b",instance="c"} 1.5e+09 stale` + rest
	if got := r.String(); got != want {
		t.Errorf("the recording is\n%s, want\n%s", got, want)
	}
}
