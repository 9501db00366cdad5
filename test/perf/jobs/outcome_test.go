package jobs

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

func at(ms int) time.Time { return time.Date(2026, 1, 2, 3, 4, 5, ms*1e6, time.UTC) }

func TestDelaysStartAtTheResponseToTheCreate(t *testing.T) {
	job := func(verb, name string, suspended bool, ms int) *rig.Entry {
		return &rig.Entry{Kind: rig.Kind{Agent: "a", Verb: verb, Group: "batch", Resource: "jobs"},
			Namespace: Namespace, Name: name, OK: true, Answered: at(ms), Whole: true, Suspended: suspended}
	}
	pod := func(name, owner string, ms int) *rig.Entry {
		return &rig.Entry{Kind: rig.Kind{Agent: "b", Verb: "create", Resource: "pods"},
			Namespace: Namespace, Name: name, OK: true, Answered: at(ms), Whole: true, Owner: owner}
	}
	bound := func(name string, ms int) *rig.Entry {
		return &rig.Entry{Kind: rig.Kind{Agent: "c", Verb: "create", Resource: "pods", Subresource: "binding"},
			Namespace: Namespace, Name: name, OK: true, Answered: at(ms)}
	}
	status := job("update", "job-1-a", false, 5)
	status.Subresource, status.Whole = "status", false
	refused := job("patch", "job-1-a", false, 10)
	refused.OK, refused.Whole = false, false
	elsewhere := job("create", "job-1-x", true, 1)
	elsewhere.Namespace = "default"
	d := newDiary("job-1-", rig.Counts{})
	for _, e := range []*rig.Entry{
		job("create", "job-1-a", true, 0),
		status,
		refused,
		job("patch", "job-1-a", true, 15),   // still held
		job("patch", "job-1-a", false, 20),  // released
		job("patch", "job-1-a", false, 300), // another change, later
		bound("job-1-a-x", 60),              // before the entry with the pod's owner
		pod("job-1-a-x", "job-1-a", 50),
		pod("job-1-a-y", "job-1-a", 200), // a second pod
		bound("job-1-a-y", 210),
		job("create", "job-1-b", false, 100), // never held
		pod("job-1-b-x", "job-1-b", 130),
		job("create", "warm-1-a", true, 0), // does not count
		job("patch", "warm-1-a", false, 1),
		pod("warm-1-a-x", "warm-1-a", 2),
		elsewhere,
	} {
		d.see(e)
	}
	var got Delays
	d.addDelays(&got)
	slices.Sort(got.Pod)
	ms := time.Millisecond
	want := Delays{Release: report.Durations{20 * ms}, Pod: report.Durations{30 * ms, 50 * ms}, Bound: report.Durations{60 * ms}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if done, refused := d.counts.Sum(func(rig.Kind) bool { return true }); done != 15 || refused != 1 {
		t.Errorf("counted %d writes and %d refused", done, refused)
	}
}

func TestQueuesAreComparedTurnByTurn(t *testing.T) {
	turns := func(seconds ...int) (all []Turn) {
		for _, s := range seconds {
			all = append(all, Turn{Jobs: 120, Wall: time.Duration(s) * time.Second})
		}
		return all
	}
	plain, ours := NewOutcome(Queue{Name: None}), NewOutcome(Queue{Name: KubeQueue})
	plain.Turns, ours.Turns = turns(2, 3, 4), turns(4, 4, 8)
	for _, kind := range []rig.Kind{
		{Agent: rig.Extensions, Verb: "patch", Resource: "jobs"}, {Agent: rig.Controller, Verb: "create", Resource: "events"},
		{Agent: rig.Controller, Verb: "patch", Resource: "queues", Subresource: "status"}, {Agent: "kwok", Verb: "patch", Resource: "pods"},
	} {
		ours.Counts[kind] = rig.Row{Kind: kind, Done: 360}
	}
	ours.addUse(rig.Use{"etcd": {CPU: 360 * time.Millisecond, Peak: 1 << 20}})
	ours.addUse(rig.Use{"etcd": {CPU: 360 * time.Millisecond, Peak: 3 << 20}})
	ours.Delays.Release = report.Durations{time.Millisecond, 3 * time.Millisecond}
	r := report.New("jobs")
	Report(r, Options{Rate: 20}, []*Outcome{plain, ours})
	for key, want := range map[[2]string]float64{
		{"none", "completions, median"}:                                           40,
		{"kube-queue", "turn 1, completions"}:                                     30,
		{"kube-queue compared with none", "completions/s, as a part, median"}:     0.5,
		{"kube-queue compared with none", "turn 2, completions/s, as a part"}:     0.75,
		{"kube-queue: API writes a job", "all"}:                                   4,
		{"kube-queue: API writes a job", "kube-queue, on jobs, units and events"}: 2,
		{"kube-queue: API writes a job", "kube-queue, of these events"}:           1,
		{"kube-queue: API writes a job", "kube-queue, on Queues and trees"}:       1,
		{"kube-queue: CPU and memory", "etcd, CPU a job"}:                         2,
		{"kube-queue: CPU and memory", "etcd, peak memory"}:                       3,
		{"kube-queue: create to release", "p50"}:                                  1,
		{"kube-queue: create to release", "p99"}:                                  3,
	} {
		if f := r.Find(key[0], key[1]); f == nil || f.Value != want {
			t.Errorf("%v: got %+v, want %v", key, f, want)
		}
	}
	for _, options := range []Options{{}, {Room: 5}} {
		r := report.New("jobs")
		Report(r, options, []*Outcome{plain, ours})
		if f := r.Find("kube-queue compared with none", "completions/s, as a part, median"); f.Bar == nil {
			t.Errorf("%+v: the comparison has no bar", options)
		}
	}
}
