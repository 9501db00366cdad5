package traces

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/pkg/simulator/search"
	"kube-queue.dev/kube-queue/test/require"
)

// Loose limits, 2 to 5 times the run time, are enough for both a short mean and a short maximum: the job with the
// shortest limit goes first, and the job that has waited longest gets room after 60 hours.
func TestPhillyWithReservations(t *testing.T) {
	for _, c := range []struct {
		limited        float64
		mean, p90, max float64
	}{
		{1, 3.0, 8, 80},
		{0.5, 4.5, 13, 90},
	} {
		t.Run(fmt.Sprintf("%.0f %% have limits", 100*c.limited), func(t *testing.T) {
			t.Parallel()
			scenario := phillyScenario(t, quotatree.Single, 600, queue.ShortestFirst, false)
			scenario.Jobs, scenario.ReserveAfter = slices.Clone(scenario.Jobs), 60*time.Hour
			random := rand.New(rand.NewPCG(1, 42))
			for i := range scenario.Jobs {
				j := &scenario.Jobs[i]
				if factor := 2 + 3*random.Float64(); random.Float64() < c.limited {
					j.Limit = time.Duration(factor * float64(j.Runs))
				}
			}
			began := time.Now()
			result, err := simulator.Run(t.Context(), scenario)
			require.NoError(t, err)
			all := report.Of(&scenario, result, report.Options{Resource: gpu}).All
			hours := func(s report.Seconds) float64 { return float64(s) / 3600e9 }
			t.Logf("mean %.2f h, p90 %.1f h, max %.1f h, in %v", hours(all.Mean), hours(all.P90), hours(all.Max), time.Since(began))
			if hours(all.Mean) > c.mean || c.p90 > 0 && hours(all.P90) > c.p90 || hours(all.Max) > c.max {
				t.Errorf("want at most %.1f, %.1f and %.1f", c.mean, c.p90, c.max)
			}
			if result.Flushes != 0 {
				t.Errorf("the core lost %d wake-ups", result.Flushes)
			}
		})
	}
}

// With a reservation time found on the first half of the trace, jobs of the second half wait a third as long as with
// RoundRobin, in the mean and at most. The longest waits with Block are shorter: it serves jobs in order.
func TestAReservationTimeFoundOnTheFirstHalfOfPhillyShortensWaitsInTheSecond(t *testing.T) {
	const gpus = 560
	scenario := phillyScenario(t, quotatree.Single, gpus, queue.ShortestFirst, false)
	scenario.Jobs = slices.Clone(scenario.Jobs)
	random := rand.New(rand.NewPCG(1, 42))
	for i := range scenario.Jobs {
		j := &scenario.Jobs[i]
		j.Limit = time.Duration((2 + 3*random.Float64()) * float64(j.Runs))
	}
	found, err := search.Best(t.Context(), scenario, []search.Settings{{ReserveAfter: 80 * time.Hour, Min: 100}, {ReserveAfter: 160 * time.Hour, Min: 100}})
	require.NoError(t, err)
	for _, score := range append(found.First, found.Second) {
		t.Logf("after %v: mean %s, p90 %s, max %s", score.ReserveAfter, score.Mean, score.P90, score.Max)
	}
	for _, policy := range []*queue.Policy{queue.RoundRobin, queue.Block} {
		other, err := search.Of(t.Context(), phillyScenario(t, quotatree.Single, gpus, policy, false), len(scenario.Jobs)/2)
		require.NoError(t, err)
		mean, longest := float64(other.Mean)/float64(found.Second.Mean), float64(other.Max)/float64(found.Second.Max)
		t.Logf("second half with %s: mean %s, p90 %s, max %s, which is %.1f times the mean and %.1f times the maximum", policy, other.Mean, other.P90, other.Max, mean, longest)
		if mean < 3 || longest < 3 && policy == queue.RoundRobin {
			t.Errorf("want a third of the waits with %s at most", policy)
		}
	}
}
