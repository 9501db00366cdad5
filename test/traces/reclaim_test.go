package traces

import (
	"slices"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/test/require"
)

// With reclaim, tenants get their min back at once. How much work is lost, and how long others wait because it is
// done again, depends on whether jobs resume where they stopped.
func TestPhillyTenantsGetTheirMinBack(t *testing.T) {
	const longestOwed = time.Minute
	for _, c := range []struct {
		name    string
		victims simulator.Victims
		// evictions, the lost share of all GPU hours and the mean wait are upper bounds.
		evictions int
		lost      float64
		mean      time.Duration
	}{
		{"resume", simulator.Resume, 15_000, 0, 8 * time.Hour},
		{"restart", simulator.Restart, 15_000, 0.04, 15 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			scenario := phillyScenario(t, quotatree.Elastic, 600, queue.RoundRobin, false)
			scenario.Options.Reclaim, scenario.Victims = true, c.victims
			scenario.Core.MinRunTime = 30 * time.Second
			result, err := simulator.Run(t.Context(), scenario)
			require.NoError(t, err)
			if result.Flushes != 0 {
				t.Errorf("the core lost %d wake-ups", result.Flushes)
			}
			var used, lost, waited float64
			for i, o := range result.Outcomes {
				if !o.Released {
					t.Fatalf("job %s never ended: %+v", scenario.Jobs[i].Name, o)
				}
				gpus := float64(gpusOf(scenario.Jobs[i]))
				used += gpus * scenario.Jobs[i].Runs.Hours()
				lost += gpus * o.Lost.Hours()
				waited += (o.End - scenario.Jobs[i].Submitted - scenario.Jobs[i].Runs - o.Lost).Hours()
			}
			mean := waited / float64(len(result.Outcomes))
			owed, jobs := meanOfOwed(scenario, result)
			share := lost / (used + lost)
			evictions := len(result.Interrupted)
			t.Logf("%d evictions; %.2f %% of %.0f GPU hours lost; mean wait %.2f h; mean wait of the %d jobs within their min %v",
				evictions, 100*share, used+lost, mean, jobs, owed)
			if evictions > c.evictions || share > c.lost || mean > c.mean.Hours() || owed >= longestOwed {
				t.Errorf("want at most %d evictions, %v lost, a mean of %v, and less than %v within the min", c.evictions, c.lost, c.mean, longestOwed)
			}
			if evictions < 100 {
				t.Errorf("only %d evictions: the test proves little", evictions)
			}
		})
	}
}

func gpusOf(job simulator.Job) int64 {
	q := job.Requests[gpu]
	return q.Value()
}

// meanOfOwed returns the mean wait until the first start of the jobs that were within the min of their tenant when
// submitted, counting all its jobs that had been submitted and had not ended.
func meanOfOwed(scenario simulator.Scenario, result *simulator.Result) (mean time.Duration, jobs int) {
	least := map[string]int64{}
	for _, leaf := range scenario.Tree.Children {
		q := leaf.Min[gpu]
		for _, namespace := range leaf.Namespaces {
			least[namespace] = q.Value()
		}
	}
	type event struct {
		at  time.Duration
		job int
		end bool
	}
	var events []event
	for i, o := range result.Outcomes {
		events = append(events, event{scenario.Jobs[i].Submitted, i, false}, event{o.End, i, true})
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if a.at != b.at {
			return int(max(min(a.at-b.at, 1), -1))
		}
		if a.end == b.end {
			return 0
		}
		if a.end {
			return -1
		}
		return 1
	})
	present := map[string]int64{}
	var sum time.Duration
	for _, e := range events {
		job := scenario.Jobs[e.job]
		if e.end {
			present[job.Namespace] -= gpusOf(job)
			continue
		}
		present[job.Namespace] += gpusOf(job)
		if gpusOf(job) > 0 && present[job.Namespace] <= least[job.Namespace] {
			sum += result.Outcomes[e.job].FirstStart - job.Submitted
			jobs++
		}
	}
	if jobs == 0 {
		return 0, 0
	}
	return sum / time.Duration(jobs), jobs
}
