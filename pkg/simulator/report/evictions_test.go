package report_test

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/test/require"
)

// Two GPUs, one for each tenant. The first tenant uses both from 0 to 1 h. Then the second one gets its
// GPU back for an hour, and a1 waits from 1 h to 2 h.
func evicting(victims simulator.Victims) simulator.Scenario {
	return simulator.Scenario{
		Jobs:    []simulator.Job{job("a", "a1", 0, 4, "1"), job("a", "a2", 0, 4, "1"), job("b", "b1", 1, 1, "1")},
		Tree:    root("2", leaf("a", "1", "2"), leaf("b", "1", "2")),
		Options: tree.Options{Reclaim: true},
		Victims: victims,
	}
}

func TestEvictionsOfASmallTrace(t *testing.T) {
	for _, c := range []struct {
		victims              simulator.Victims
		lost, used, makespan float64
	}{
		{simulator.Restart, 1, 10, 6},
		{simulator.Resume, 0, 9, 5},
	} {
		r := of(t, evicting(c.victims))
		e := *r.All.Evictions
		want := report.Evictions{Count: 1, Reclaimed: 1, Jobs: 1, Lost: c.lost, LostPart: c.lost / c.used, Later: hours(1), Total: hours(1) / 3}
		if e != want {
			t.Errorf("%s: evictions %+v, want %+v", c.victims, e, want)
		}
		if a, b := r.Tenants[0].Evictions, r.Tenants[1].Evictions; a.Count != 1 || a.Lost != c.lost || *b != (report.Evictions{}) {
			t.Errorf("%s: evictions of a %+v, of b %+v", c.victims, a, b)
		}
		// No job waits for its first start. The slowdowns are (makespan)/4, 1 and 1.
		if r.All.Mean != 0 || r.All.Max != 0 || r.Makespan != hours(c.makespan) {
			t.Errorf("%s: mean wait %s, longest %s, makespan %s", c.victims, r.All.Mean, r.All.Max, r.Makespan)
		}
		near(t, "slowdown", r.All.Slowdown, (c.makespan/4+2)/3)
		near(t, "hours", r.All.Hours, c.used)
		near(t, "used hours", r.Use[0].Hours, c.used)
		near(t, "use", r.Use[0].Part, c.used/(2*c.makespan))
		near(t, "early use", r.Use[0].PartEarly, 1)
		near(t, "demand", r.Demand, 9)
		near(t, "shortfall", r.Fairness.Shortfall[0].Hours, 0)
		var used, waiting float64
		for k := range r.Series.Waiting {
			interval := time.Duration(r.Series.Interval).Hours()
			used += (r.Series.Use["a"][k] + r.Series.Use["b"][k]) * interval
			waiting += r.Series.Waiting[k] * interval
		}
		near(t, "GPU-hours of the series", used, c.used)
		near(t, "hours of waiting of the series", waiting, 1)
	}
}

func TestAQuotaLacksItsMinUntilVictimsHaveStopped(t *testing.T) {
	s := evicting(simulator.Restart)
	s.StopsIn = 3 * time.Minute
	r := of(t, s)
	near(t, "shortfall", r.Fairness.Shortfall[0].Hours, 0.05)
	near(t, "lost hours", r.All.Evictions.Lost, 1.05)
	if r.Fairness.Shortfall[0].Worst != "root/b" || r.Tenants[1].Mean != hours(0.05) {
		t.Errorf("fairness %+v, evictions %+v, b %+v", r.Fairness, r.All.Evictions, r.Tenants[1])
	}
}

func evictingPaper(t *testing.T) *report.Paper {
	t.Helper()
	s := evicting(simulator.Restart)
	s.Preemption.WithinQueue = true
	s.Core.MinRunTime, s.StopsIn = 30*time.Second, time.Minute
	return &report.Paper{Tree: report.Tree{OversellRate: "1"}, Preemption: report.PreemptionOf(&s), Reports: []*report.Report{of(t, evicting(simulator.Restart))}}
}

func TestAllFormatsReportEvictions(t *testing.T) {
	p := evictingPaper(t)
	var table, rows, all strings.Builder
	require.NoError(t, p.Table(&table))
	plain := strings.Join(strings.Fields(table.String()), " ")
	require.Says(t, "the table", plain,
		"Evicted for jobs within the min of their quota (reclaim) and for jobs with higher priority in their queue; not within 30 s after the release; evicted jobs stop after 1 min and start again from zero",
		"EVICTIONS RECLAIMED PREEMPTED JOBS HOURS LOST PART LOST WAIT AFTER TOTAL WAIT Block 1 1 0 1 1 10.0 % 1 h 20 min",
		"SLOWDOWN EVICTIONS HOURS LOST a 2 0 9", "from submission to first release", "PART LOST is their part",
	)
	require.NoError(t, p.CSV(&rows))
	records, err := csv.NewReader(strings.NewReader(rows.String())).ReadAll()
	require.NoError(t, err)
	if got := strings.Join(records[1][11:], " "); got != "nvidia.com/gpu 10.000 1 1 0 1 1.000 3600 1200" {
		t.Errorf("the first row ends with %s", got)
	}
	require.NoError(t, p.JSON(&all))
	var got struct {
		Preemption struct {
			Reclaim, WithinQueue              bool
			MinRunTimeSeconds, StopsInSeconds float64
			Victims                           string
		}
		Policies []struct {
			All struct {
				Evictions struct{ Count, WaitTotalMeanSeconds float64 }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(all.String()), &got))
	if s := got.Preemption; !s.Reclaim || !s.WithinQueue || s.MinRunTimeSeconds != 30 || s.StopsInSeconds != 60 || s.Victims != "restart" {
		t.Errorf("settings %+v", s)
	}
	if e := got.Policies[0].All.Evictions; e.Count != 1 || e.WaitTotalMeanSeconds != 1200 {
		t.Errorf("evictions %+v", e)
	}
}

func TestWithoutPreemptionNoFormatSpeaksOfEvictions(t *testing.T) {
	for _, s := range []simulator.Scenario{{}, {Queues: []scheduler.QueueChanged{{Queue: "root-a"}}}} {
		if p := report.PreemptionOf(&s); p != nil {
			t.Errorf("preemption %+v", p)
		}
	}
	p := papers(t)
	var out strings.Builder
	for _, write := range []func() error{func() error { return p.Table(&out) }, func() error { return p.CSV(&out) }, func() error { return p.JSON(&out) }} {
		require.NoError(t, write())
	}
	if strings.Contains(strings.ToLower(out.String()), "evict") {
		t.Errorf("evictions are reported:\n%s", &out)
	}
}
