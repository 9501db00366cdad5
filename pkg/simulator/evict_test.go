package simulator_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/test/require"
)

// reclaiming has a tenant that borrows everything for 100 s. At 40 s, a job arrives that is owed half of it for 10 s.
func reclaiming() simulator.Scenario {
	return simulator.Scenario{
		Jobs:    []simulator.Job{job("b/b1", 0, 100, 2), job("b/b2", 0, 100, 2), job("owed", 40, 10, 2)},
		Tree:    twoLeaves(),
		Options: tree.Options{Reclaim: true},
	}
}

// lives lists when each job started, when it first started if that differs, when it ended, and how often it was
// evicted. Times are in seconds.
func lives(s simulator.Scenario, r *simulator.Result) string {
	var list []string
	for i, j := range s.Jobs {
		o, first := r.Outcomes[i], ""
		if o.FirstStart != o.Start {
			first = fmt.Sprintf("%v,", o.FirstStart.Seconds())
		}
		text := fmt.Sprintf("%s=%s%v-%v", j.Name, first, o.Start.Seconds(), o.End.Seconds())
		if o.Evictions > 0 {
			text += fmt.Sprintf(" evicted %d, lost %v", o.Evictions, o.Lost.Seconds())
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

func TestAnEvictedJobStopsWaitsAndStartsAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(*simulator.Scenario)
		want string
	}{
		{"without reclaim nobody is evicted", func(s *simulator.Scenario) { s.Options.Reclaim = false },
			"b1=0-100; b2=0-100; owed=100-110"},
		{"it starts from zero", func(*simulator.Scenario) {},
			"b1=0,50-150 evicted 1, lost 40; b2=0-100; owed=40-50"},
		{"it goes on where it stopped", func(s *simulator.Scenario) { s.Victims = simulator.Resume },
			"b1=0,50-110 evicted 1, lost 0; b2=0-100; owed=40-50"},
		{"it holds its quota until it has stopped", func(s *simulator.Scenario) { s.StopsIn = 5 * time.Second },
			"b1=0,55-155 evicted 1, lost 45; b2=0-100; owed=45-55"},
		{"it goes on until it has stopped", func(s *simulator.Scenario) { s.StopsIn, s.Victims = 5*time.Second, simulator.Resume },
			"b1=0,55-110 evicted 1, lost 0; b2=0-100; owed=45-55"},
		{"it ends before it would have stopped", func(s *simulator.Scenario) { s.StopsIn = time.Minute },
			"b1=0-100; b2=0-100; owed=100-110"},
		{"it is evicted when it has run for long enough, without any other event", func(s *simulator.Scenario) { s.Core.MinRunTime = 70 * time.Second },
			"b1=0,80-180 evicted 1, lost 70; b2=0-100; owed=70-80"},
		{"it waits for the end of its backoff, also when nothing runs", func(s *simulator.Scenario) {
			s.Core.Requeues = backoff.Policy{Initial: 10 * time.Minute, Max: time.Hour}
		}, "b1=0,640-740 evicted 1, lost 40; b2=0-100; owed=40-50"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := reclaiming()
			c.with(&s)
			r, err := simulator.Run(t.Context(), s)
			require.NoError(t, err)
			if got := lives(s, r); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if r.Flushes != 0 {
				t.Errorf("the core lost %d wake-ups", r.Flushes)
			}
		})
	}
}

func TestEvictionsAreCountedByReason(t *testing.T) {
	for _, c := range []struct {
		reason               wellknown.Reason
		scenario             simulator.Scenario
		preempted, reclaimed int
	}{
		{wellknown.ReasonReclaimed, reclaiming(), 0, 1},
		{wellknown.ReasonPreempted, simulator.Scenario{
			Jobs:       []simulator.Job{job("low", 0, 100, 4), priority(1, job("high", 40, 10, 4))},
			Tree:       oneLeaf(4),
			Preemption: scheduler.Preemption{WithinQueue: true},
		}, 1, 0},
	} {
		r, err := simulator.Run(t.Context(), c.scenario)
		require.NoError(t, err)
		o := r.Outcomes[0]
		if o.Evictions != 1 || o.Preempted != c.preempted || o.Reclaimed != c.reclaimed || o.Lost != 40*time.Second {
			t.Errorf("%s: outcome %+v", c.reason, o)
		}
		if want := (simulator.Interruption{Job: 0, Start: 0, End: 40 * time.Second}); len(r.Interrupted) != 1 || r.Interrupted[0] != want {
			t.Errorf("%s: interrupted %+v, want %+v", c.reason, r.Interrupted, want)
		}
	}
}

func TestTheSettingsOfAQueueReplaceThoseOfAll(t *testing.T) {
	s := simulator.Scenario{
		Jobs:       []simulator.Job{job("low", 0, 100, 4), priority(1, job("high", 40, 10, 4))},
		Tree:       oneLeaf(4),
		Preemption: scheduler.Preemption{WithinQueue: true},
		Queues:     []scheduler.QueueChanged{{Queue: "root-leaf"}},
	}
	r, err := simulator.Run(t.Context(), s)
	if err != nil || len(r.Interrupted) != 0 {
		t.Errorf("%d evictions, error %v", len(r.Interrupted), err)
	}
}

// evicting returns all combinations of settings that evict jobs.
func evicting() (list []simulator.Scenario) {
	for _, victims := range []simulator.Victims{simulator.Restart, simulator.Resume} {
		for _, stopsIn := range []time.Duration{0, 3 * time.Second} {
			for _, requeues := range []backoff.Policy{{}, {Free: 1, Initial: 2 * time.Second, Max: time.Minute, Quiet: time.Minute}} {
				list = append(list, simulator.Scenario{Tree: twoLeaves(), Options: tree.Options{Reclaim: true}, Victims: victims, StopsIn: stopsIn,
					Preemption: scheduler.Preemption{WithinQueue: true}, Core: scheduler.Options{MinRunTime: 2 * time.Second, Requeues: requeues}})
			}
		}
	}
	return list
}

func TestEveryRunOfAJobIsAccountedFor(t *testing.T) {
	evictions := 0
	for k, s := range append(policies(), evicting()...) {
		for seed := range uint64(5) {
			s.Jobs = crowd(rand.New(rand.NewPCG(seed, 3)))
			r, err := simulator.Run(t.Context(), s)
			require.NoError(t, err)
			evictions += len(r.Interrupted)
			if r.Flushes != 0 {
				t.Errorf("settings %d, seed %d: the core lost %d wake-ups", k, seed, r.Flushes)
			}
			expectAccounts(t, fmt.Sprintf("settings %d, seed %d", k, seed), s, r)
		}
	}
	if evictions < 500 {
		t.Errorf("only %d evictions: the test proves little", evictions)
	}
}

// expectAccounts checks that the runs of each job add up, and that at most 4 GPUs are in use.
func expectAccounts(t *testing.T, where string, s simulator.Scenario, r *simulator.Result) {
	t.Helper()
	type span struct {
		start, end time.Duration
		gpus       int64
	}
	var spans []span
	ran, last, times := make([]time.Duration, len(s.Jobs)), make([]time.Duration, len(s.Jobs)), make([]int, len(s.Jobs))
	add := func(i int, start, end time.Duration) {
		q := s.Jobs[i].Requests[gpu]
		spans = append(spans, span{start, end, q.Value()})
		if start < s.Jobs[i].Submitted || start < last[i] || end < start {
			t.Fatalf("%s: job %s runs from %v to %v, after %v", where, s.Jobs[i].Name, start, end, last[i])
		}
		last[i] = end
	}
	var at time.Duration
	for _, n := range r.Interrupted {
		if n.End < at {
			t.Fatalf("%s: interruptions are not in order", where)
		}
		at = n.End
		add(n.Job, n.Start, n.End)
		ran[n.Job] += n.End - n.Start
		times[n.Job]++
	}
	for i, o := range r.Outcomes {
		asked := s.Jobs[i].Requests[gpu]
		if possible := asked.Value() <= 4; o.Released != possible {
			t.Fatalf("%s: job %s requests %d, released %t: %s", where, s.Jobs[i].Name, asked.Value(), o.Released, o.Message)
		}
		if !o.Released {
			continue
		}
		add(i, o.Start, o.End)
		runs := o.End - o.Start
		if s.Victims == simulator.Resume {
			runs += ran[i]
		} else if o.Lost != ran[i] {
			t.Fatalf("%s: job %s lost %v, but ran %v before its evictions", where, s.Jobs[i].Name, o.Lost, ran[i])
		}
		if runs != s.Jobs[i].Runs || o.Evictions != times[i] || o.Preempted+o.Reclaimed != o.Evictions || o.FirstStart > o.Start || o.FirstStart < s.Jobs[i].Submitted {
			t.Fatalf("%s: job %+v came to %+v; it ran %v and was interrupted %d times", where, s.Jobs[i], o, runs, times[i])
		}
	}
	for _, a := range spans {
		used := int64(0)
		for _, b := range spans {
			if b.start <= a.start && a.start < b.end {
				used += b.gpus
			}
		}
		if used > 4 {
			t.Fatalf("%s: %d GPUs are in use at %v", where, used, a.start)
		}
	}
}
