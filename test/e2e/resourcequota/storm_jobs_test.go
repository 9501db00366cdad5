package resourcequota

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// drawn is a random job of the storm.
type drawn struct {
	kind, name, manifest string
	// runs is the minimum run time.
	runs  time.Duration
	fails bool

	submitted bool
	// whole is the time when all its pods existed.
	whole time.Time
	// reported: the test has ended the job; ended: the unit shows its end.
	reported, ended bool
}

// drawJobs draws this many jobs, of each kind in turn.
func drawJobs(from *rand.Rand, count int) []*drawn {
	jobs := make([]*drawn, count)
	for i := range jobs {
		jobs[i] = drawJob(from, i)
	}
	// Shuffle, so that the kinds are not in a fixed order.
	from.Shuffle(count, func(a, b int) { jobs[a], jobs[b] = jobs[b], jobs[a] })
	return jobs
}

func drawJob(from *rand.Rand, i int) *drawn {
	j := &drawn{
		name:  fmt.Sprintf("job-%03d", i),
		runs:  time.Duration(4000+from.IntN(8000)) * time.Millisecond,
		fails: from.IntN(8) == 0,
	}
	some := func(most int) int { return 1 + from.IntN(most) }
	switch i % 4 {
	case 0:
		j.kind = "Job"
		j.manifest = endingJob(j.name, pods{count: some(5), container: drawContainer(from, 9)}, j.fails)
	case 1:
		j.kind = "TFJob"
		j.manifest = tfjob(j.name, pods{count: 1, container: drawContainer(from, 5)}, pods{count: some(4), container: drawContainer(from, 7)}, j.fails)
	case 2:
		j.kind = "RayJob"
		j.manifest = rayjob(j.name, pods{container: drawContainer(from, 6)}, pods{count: some(3), container: drawContainer(from, 6)}, j.fails)
	default:
		j.kind = "SparkApplication"
		j.manifest = spark(j.name, some(3), fmt.Sprintf("%d00m", some(8)), j.fails)
	}
	return j
}

// drawContainer draws requests of up to this many tenths of a CPU. Limits are higher, because some
// quotas count them.
func drawContainer(from *rand.Rand, tenths int) container {
	millis, mebis := 100*(1+from.IntN(tenths)), 64*(1+from.IntN(8))
	return container{
		requests: fmt.Sprintf("cpu: %dm, memory: %dMi", millis, mebis),
		limits:   fmt.Sprintf("cpu: %dm, memory: %dMi", millis+100*from.IntN(4), mebis+64*from.IntN(3)),
	}
}
