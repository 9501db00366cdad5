package jobs

import (
	"slices"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

func TestDelaysStartAtTheResponseToTheCreate(t *testing.T) {
	entry := func(verb, name string, suspended bool, ms int) *rig.Entry {
		return &rig.Entry{Kind: rig.Kind{Agent: "a", Verb: verb, Group: "batch", Resource: "jobs", OK: true}, Namespace: Namespace, Name: name,
			Answered: time.Date(2026, 1, 2, 3, 4, 5, ms*1e6, time.UTC), Whole: true, Suspended: suspended}
	}
	status := entry("update", "job-a", false, 5)
	status.Subresource = "status"
	refused := entry("patch", "job-a", false, 10)
	refused.OK, refused.Whole = false, false
	elsewhere := entry("create", "job-x", true, 1)
	elsewhere.Namespace = "default"
	d := newDiary("job-")
	for _, e := range []*rig.Entry{
		entry("patch", "job-a", false, 300), // another change, later
		entry("create", "job-a", true, 0),
		status,
		refused,
		entry("patch", "job-a", true, 15),   // still held
		entry("patch", "job-a", false, 20),  // released
		entry("delete", "job-a", false, 17), // deleted
		entry("create", "job-b", false, 0),  // never held
		entry("patch", "job-b", false, 1),
		entry("create", "job-c", true, 0), // never released
		entry("create", "warm-a", true, 0),
		entry("patch", "warm-a", false, 1),
		elsewhere,
	} {
		d.see(e)
	}
	if got := d.releases(); !slices.Equal(got, report.Durations{20 * time.Millisecond}) {
		t.Errorf("the delays are %v", got)
	}
	if len(d.counts) != 5 || d.counts[elsewhere.Kind] != 5 {
		t.Errorf("counted %v", d.counts)
	}
}

func TestAQueueIsComparedWithNone(t *testing.T) {
	plain := &Outcome{queue: Queue{Name: None}, options: Options{Jobs: 120}, wall: 2 * time.Second}
	ours := &Outcome{queue: Queue{Name: KubeQueue}, options: Options{Jobs: 120, Rate: 20}, wall: 4 * time.Second,
		releases: report.Durations{time.Millisecond, 3 * time.Millisecond},
		counts:   rig.Counts{{Agent: rig.Extensions, Verb: "patch", Resource: "jobs", OK: true}: 360},
		use:      rig.Use{"etcd": {CPU: 240 * time.Millisecond, Resident: 3 << 20}}}
	r := report.New("jobs")
	plain.Report(r, nil)
	ours.Report(r, plain)
	for key, want := range map[[2]string]float64{
		{"none", "completions"}:                                                   60,
		{"kube-queue", "completions"}:                                             30,
		{"kube-queue", "completions, of those without a queue"}:                   0.5,
		{"kube-queue: API writes a job", "kube-queue, on jobs, units and events"}: 3,
		{"kube-queue: processor time", "etcd"}:                                    2,
		{"kube-queue: memory", "etcd"}:                                            3,
		{"kube-queue: create to release", "p99"}:                                  3,
	} {
		if f := r.Find(key[0], key[1]); f == nil || f.Value != want {
			t.Errorf("%v: got %+v, want %v", key, f, want)
		}
	}
	for _, c := range []struct {
		options Options
		want    bars
	}{
		{Options{Rate: 20}, bars{writes: &writesAtOnce, half: &releaseHalf, all: &releaseAll}},
		{Options{}, bars{writes: &writesAtOnce, burst: &burstAmple}},
		{Options{Room: 5}, bars{writes: &writesWaited, burst: &burstWaiting}},
	} {
		ours.options = c.options
		if got := ours.bars(); got != c.want {
			t.Errorf("%+v: the bars are %+v", c.options, got)
		}
	}
}
