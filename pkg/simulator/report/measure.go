package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/simulator"
)

// shortRun is the minimum run time that counts for a slowdown.
const shortRun = 10 * time.Second

// job is a job with its outcome and its statistics.
type job struct {
	*simulator.Job
	simulator.Outcome
	// interrupted are the runs that an eviction ended, in order.
	interrupted []simulator.Interruption
	// wait is the time to the first start. later is the time between evictions and the next starts.
	wait, later time.Duration
	// slowdown is in millionths.
	slowdown int64
	// amount is the request for the resource of the report, in base units.
	amount int64
	// requests are in base units, sorted by name.
	requests []request
}

type request struct {
	resource string
	value    int64
}

// of returns the request of the job for a resource.
func (j *job) of(resource string) int64 {
	if resource == quota.JobsResource {
		return 1
	}
	for _, r := range j.requests {
		if r.resource == resource {
			return r.value
		}
	}
	return 0
}

// measured is a run that statistics are computed from.
type measured struct {
	resource string
	// evicting is true if jobs can be evicted.
	evicting bool
	// jobs are sorted by submission, then by name.
	jobs []job
	// The first and the last submission, the last end and the longest wait.
	first, last, end, longest time.Duration
}

func measure(scenario *simulator.Scenario, result *simulator.Result, resource string) *measured {
	m := &measured{resource: resource, evicting: evicting(scenario), jobs: make([]job, len(scenario.Jobs))}
	interrupted := map[int][]simulator.Interruption{}
	for _, n := range result.Interrupted {
		interrupted[n.Job] = append(interrupted[n.Job], n)
	}
	for i := range m.jobs {
		j := &m.jobs[i]
		j.Job, j.Outcome, j.interrupted = &scenario.Jobs[i], result.Outcomes[i], interrupted[i]
		for name, q := range j.Requests {
			// The scenario was simulated, so all requests are valid.
			value, _ := resources.RequestValue(name, q)
			j.requests = append(j.requests, request{resource: name, value: value})
		}
		slices.SortFunc(j.requests, func(a, b request) int { return strings.Compare(a.resource, b.resource) })
		j.amount = j.of(resource)
		if j.Released {
			j.wait = j.FirstStart - j.Submitted
			j.later = -j.wait
			j.eachWait(func(from, to time.Duration) { j.later += to - from })
			j.slowdown = slowdown(j.End-j.Submitted, j.Runs)
		}
	}
	slices.SortFunc(m.jobs, func(a, b job) int {
		return cmp.Or(cmp.Compare(a.Submitted, b.Submitted), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	if len(m.jobs) > 0 {
		m.first, m.last = m.jobs[0].Submitted, m.jobs[len(m.jobs)-1].Submitted
	}
	m.end = m.last
	for i := range m.jobs {
		m.end, m.longest = max(m.end, m.jobs[i].End), max(m.longest, m.jobs[i].wait)
	}
	return m
}

// eachRun calls do with the start and the end of each run.
func (j *job) eachRun(do func(from, to time.Duration)) {
	for _, n := range j.interrupted {
		do(n.Start, n.End)
	}
	if j.Released {
		do(j.Start, j.End)
	}
}

// eachWait calls do for each time that the job waited, from its submission or eviction to the
// next start.
func (j *job) eachWait(do func(from, to time.Duration)) {
	from := j.Submitted
	j.eachRun(func(start, end time.Duration) {
		do(from, start)
		from = end
	})
}

// slowdown returns the bounded slowdown, in millionths, of a job with this turnaround and run time.
func slowdown(turnaround, run time.Duration) int64 {
	const million = 1_000_000
	var a area
	a.add(int64(turnaround), million)
	return max(a.over(int(max(run, shortRun))), million)
}
