package traces

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/test/require"
)

// liarDay returns the mean waits of a tenant that changes what its jobs declare and of the honest tenants, in days of
// random jobs. Each of four tenants with equal load is the liar once each day, which evens out their luck.
func liarDay(t *testing.T, kind quotatree.Kind, lie func(*simulator.Job)) (liar, honest time.Duration) {
	const tenants, each, gpus, days = 4, 150, 40, 3
	var sums [2]time.Duration
	for day := range uint64(days) {
		for lying := range tenants {
			random := rand.New(rand.NewPCG(day, 42))
			var jobs []simulator.Job
			for n := range each * tenants {
				runs := time.Duration(math.Exp(random.NormFloat64()) * float64(time.Hour)).Truncate(time.Second)
				j := simulator.Job{Namespace: fmt.Sprintf("t%d", n%tenants), Name: fmt.Sprintf("j%03d", n), Submitted: time.Duration(random.Int64N(int64(24 * time.Hour))),
					Runs: runs, Requests: map[string]resource.Quantity{gpu: *resource.NewQuantity(1<<random.IntN(3), resource.DecimalSI)}}
				j.Expected = time.Duration((0.7 + 0.6*random.Float64()) * float64(runs))
				if random.IntN(4) == 0 {
					j.Limit, j.Expected = 2*runs, 0
				}
				if n%tenants == lying {
					lie(&j)
				}
				jobs = append(jobs, j)
			}
			scenario := simulator.Scenario{Jobs: jobs, Core: scheduler.Options{Policy: queue.ShortestFirst},
				Tree: quotatree.Propose(kind, jobs, map[string]resource.Quantity{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)})}
			result, err := simulator.Run(t.Context(), scenario)
			require.NoError(t, err)
			for i, o := range result.Outcomes {
				if wait := o.Start - jobs[i].Submitted; i%tenants == lying {
					sums[0] += wait
				} else {
					sums[1] += wait
				}
			}
		}
	}
	return sums[0] / (each * days * tenants), sums[1] / (each * days * tenants * (tenants - 1))
}

// A difference of a percent is within chance.
func TestATenantThatDeclaresLessThanTheTruthWaitsNoLessThanHonestOnes(t *testing.T) {
	for name, lie := range map[string]func(*simulator.Job){
		"a tenth": func(j *simulator.Job) { j.Expected /= 10 },
		"a tenth for half": func(j *simulator.Job) {
			if j.Submitted%2 == 0 {
				j.Expected /= 10
			}
		},
		"nothing": func(j *simulator.Job) { j.Limit, j.Expected = 0, 0 },
		"nothing for long jobs": func(j *simulator.Job) {
			if j.Runs > 3*time.Hour {
				j.Limit, j.Expected = 0, 0
			}
		},
	} {
		for _, kind := range []quotatree.Kind{quotatree.Elastic, quotatree.Single} {
			liar, honest := liarDay(t, kind, lie)
			t.Logf("with %s quotas, who declares %s waits for %v, and the honest tenants for %v", kind, name, liar, honest)
			if honest < 10*time.Minute {
				t.Error("nobody waits: the test proves little")
			}
			if liar < honest-honest/100 {
				t.Error("lying pays by more than 1 %")
			}
		}
	}
}
