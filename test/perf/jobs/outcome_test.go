package jobs

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/trail"
)

func turns(seconds ...int) []Turn {
	var all []Turn
	for _, s := range seconds {
		all = append(all, Turn{Jobs: 120, Wall: time.Duration(s) * time.Second})
	}
	return all
}

func TestQueuesAreComparedTurnByTurn(t *testing.T) {
	plain, ours := NewOutcome(Queue{Name: None}), NewOutcome(Queue{Name: KubeQueue})
	plain.Turns, ours.Turns = turns(2, 3, 4), turns(4, 4, 8)
	for _, row := range []trail.Entry{
		{Agent: rig.Extensions, Verb: "patch", Resource: "jobs", Code: 200},
		{Agent: rig.Controller, Verb: "create", Resource: "events", Code: 201},
		{Agent: rig.Controller, Verb: "patch", Resource: "queues", Subresource: "status", Code: 200},
		{Agent: "kwok", Verb: "patch", Resource: "pods", Subresource: "status", Code: 200},
	} {
		for range 360 {
			ours.Counts.Add(&row)
		}
	}
	ours.addUse(rig.Use{"etcd": {CPU: 360 * time.Millisecond, Peak: 1 << 20}})
	ours.addUse(rig.Use{"etcd": {CPU: 360 * time.Millisecond, Peak: 3 << 20}})
	ours.Delays = Delays{Release: []time.Duration{time.Millisecond, 3 * time.Millisecond}}
	for _, test := range []struct {
		name    string
		options Options
		figures map[[2]string]float64
		bars    int
	}{
		{"at once", Options{}, map[[2]string]float64{
			{"none", "completions, median"}:                                           40,
			{"kube-queue", "completions, max"}:                                        30,
			{"kube-queue compared with none", "completions/s, as a part, min"}:        0.5,
			{"kube-queue compared with none", "completions/s, as a part, median"}:     0.5,
			{"kube-queue compared with none", "completions/s, as a part, max"}:        0.75,
			{"kube-queue: API writes a job", "all"}:                                   4,
			{"kube-queue: API writes a job", "kube-queue, on jobs, units and events"}: 2,
			{"kube-queue: API writes a job", "kube-queue, of these events"}:           1,
			{"kube-queue: API writes a job", "kube-queue, on Queues and trees"}:       1,
			{"kube-queue: CPU and memory", "etcd, CPU a job"}:                         2,
			{"kube-queue: CPU and memory", "etcd, peak memory"}:                       3,
			{"kube-queue: create to release", "p50"}:                                  1,
			{"kube-queue: create to release", "p99"}:                                  3,
		}, 2},
		{"20 a second", Options{Rate: 20}, map[[2]string]float64{}, 3},
		{"waiting", Options{Room: 5}, map[[2]string]float64{}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := report.New("jobs", "", "v1", nil)
			Report(r, test.options, []*Outcome{plain, ours})
			for key, want := range test.figures {
				if f := r.Find(key[0], key[1]); f == nil || f.Value != want {
					t.Errorf("%v: got %+v, want %v", key, f, want)
				}
			}
			bars := 0
			for _, s := range r.Sections {
				for _, f := range s.Figures {
					if f.Bar != nil {
						bars++
					}
				}
			}
			if bars != test.bars {
				t.Errorf("%d figures have bars, want %d", bars, test.bars)
			}
		})
	}
}
