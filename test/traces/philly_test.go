// Package traces compares the waiting times that the simulator computes for the traces in this
// folder with those of another simulator.
package traces

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/pkg/simulator/trace"
	"kube-queue.dev/kube-queue/test/require"
)

const gpu = "nvidia.com/gpu"

var philly = sync.OnceValues(func() (*trace.Trace, error) {
	return trace.Open("philly.csv.gz", trace.Options{GPUResource: gpu})
})

func phillyScenario(t testing.TB, kind quotatree.Kind, size int64, policy *queue.Policy, pause bool) simulator.Scenario {
	t.Helper()
	played, err := philly()
	require.NoError(t, err)
	return simulator.Scenario{
		Jobs:    played.Jobs,
		Tree:    quotatree.Propose(kind, played.Jobs, map[string]resource.Quantity{gpu: *resource.NewQuantity(size, resource.DecimalSI)}),
		Options: tree.Options{PauseBorrowing: pause},
		Core:    scheduler.Options{Policy: policy},
	}
}

// The rows of the table in test/traces/README.md, computed by another simulator. Values that are
// missing or not compared are empty.
var phillyRows = []struct {
	kind   quotatree.Kind
	gpus   int64
	policy *queue.Policy
	pause  bool
	// mean and p90 are in hours, as in the table.
	mean, p90 string
	never     int
	within    float64
}{
	{quotatree.Single, 800, queue.Block, false, "0.20", "0.4", 0, 0.05},
	{quotatree.Single, 800, queue.RoundRobin, false, "0.14", "0.3", 0, 0.05},
	{quotatree.Single, 800, queue.Priority, false, "0.14", "0.3", 0, 0.05},
	{quotatree.Single, 600, queue.Block, false, "25.8", "52.6", 0, 0.05},
	{quotatree.Single, 600, queue.RoundRobin, false, "8.9", "24.7", 0, 0.05},
	{quotatree.Single, 600, queue.Priority, false, "8.9", "24.7", 0, 0.05},
	{quotatree.Hard, 800, queue.RoundRobin, false, "18.4", "40", 26, 0.05},
	{quotatree.Hard, 600, queue.RoundRobin, false, "57.5", "125", 26, 0.05},
	{quotatree.Elastic, 800, queue.RoundRobin, false, "0.14", "0.3", 0, 0.10},
	{quotatree.Elastic, 600, queue.RoundRobin, false, "4.0", "", 0, 0.10},
	{quotatree.Elastic, 600, queue.Priority, false, "4.0", "", 0, 0.10},
	{quotatree.Elastic, 600, queue.Block, false, "5.7", "", 0, 0.10},
	{quotatree.Elastic, 600, queue.RoundRobin, true, "6.9", "", 0, 0.10},
}

func TestPhillyWaitsAsLongAsInTheReference(t *testing.T) {
	for _, c := range phillyRows {
		name := fmt.Sprintf("%s quotas of %d GPUs with %s", c.kind, c.gpus, c.policy)
		if c.pause {
			name += " and borrowing paused"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario := phillyScenario(t, c.kind, c.gpus, c.policy, c.pause)
			result, err := simulator.Run(t.Context(), scenario)
			require.NoError(t, err)
			all := report.Of(&scenario, result, report.Options{Resource: gpu}).All
			compare(t, "mean", all.Mean, c.mean, c.within)
			compare(t, "p90", all.P90, c.p90, c.within)
			if all.Jobs != 82247 || all.Never != c.never {
				t.Errorf("%d of %d jobs were never released, want %d of 82247", all.Never, all.Jobs, c.never)
			}
			if result.Flushes != 0 {
				t.Errorf("the core lost %d wake-ups", result.Flushes)
			}
		})
	}
}

// On a full cluster a job that is submitted a little later changes all later waiting times. If each
// submission moves by at most half a minute, P90 of the elastic row varies by a third. The figure
// of the other simulator must be in this range.
func TestPhillyWaitsOfElasticQuotasSpreadAroundTheReference(t *testing.T) {
	const mean, p90, within = 4.0, 10.5, 0.10
	var means []float64
	least, most := math.Inf(1), 0.0
	for seed := range uint64(8) {
		scenario := phillyScenario(t, quotatree.Elastic, 600, queue.RoundRobin, false)
		random := rand.New(rand.NewPCG(seed, 1))
		scenario.Jobs = slices.Clone(scenario.Jobs)
		for i := range scenario.Jobs {
			scenario.Jobs[i].Submitted += time.Duration(random.IntN(30_000)) * time.Millisecond
		}
		result, err := simulator.Run(t.Context(), scenario)
		require.NoError(t, err)
		all := report.Of(&scenario, result, report.Options{Resource: gpu}).All
		t.Logf("mean %.2f h, P90 %.1f h", float64(all.Mean)/3600e9, float64(all.P90)/3600e9)
		means = append(means, float64(all.Mean)/3600e9)
		least, most = min(least, float64(all.P90)/3600e9), max(most, float64(all.P90)/3600e9)
	}
	slices.Sort(means)
	if median := means[len(means)/2]; math.Abs(median-mean) > within*mean {
		t.Errorf("the median of the means is %.2f h, want %v within 10 %%", median, mean)
	}
	if least > p90*(1+within) || most < p90*(1-within) {
		t.Errorf("P90 is %.1f to %.1f h, want %v within 10 %% among them", least, most, p90)
	}
}

// compare compares with a figure that is rounded to its written digits.
func compare(t *testing.T, what string, got report.Seconds, want string, within float64) {
	t.Helper()
	if want == "" {
		return
	}
	var hours float64
	_, err := fmt.Sscan(want, &hours)
	require.NoError(t, err)
	_, decimals, _ := strings.Cut(want, ".")
	rounding := 0.5 * math.Pow(10, -float64(len(decimals)))
	if measured := float64(got) / 3600e9; math.Abs(measured-hours) > within*hours+rounding {
		t.Errorf("%s is %.3f h, want %s within %.0f %%", what, measured, want, 100*within)
	}
}

func BenchmarkPhilly(b *testing.B) {
	for _, c := range phillyRows {
		b.Run(fmt.Sprintf("%s/%d/%s/pause=%t", c.kind, c.gpus, c.policy, c.pause), func(b *testing.B) {
			scenario := phillyScenario(b, c.kind, c.gpus, c.policy, c.pause)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := simulator.Run(b.Context(), scenario); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
