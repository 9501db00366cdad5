// Package report reports what a run of the simulator comes to: how long jobs waited, how
// much of the quota was used and how fairly it was shared.
//
// Words. A wait is the time from a job's submission to its release; a job that was
// never released has none, and is counted apart. A percentile is by nearest rank: P90
// is the shortest wait that at least 90 % of the jobs did not exceed. The bounded
// slowdown of a job is (wait + run) / run, where a run of less than 10 seconds counts
// as 10, and never below 1. Makespan is the time from the first submission to the last
// end. A group's shortfall is what it used less than its min while jobs of its own that
// fit in its min waited, and no more than those ask for.
//
// Invariants. The same outcomes give the same report, in whatever order the jobs are:
// what adds up is added as integers. No figure is NaN or infinite.
package report

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator"
)

// Options of a report.
type Options struct {
	// Name of the report, as of the policy that was played.
	Name string
	// Resource by which jobs are sorted by size, and whose use is followed in time.
	Resource string
}

// Report on one run.
type Report struct {
	Name string `json:"name"`
	// All jobs, and those of each tenant and size.
	All     Group   `json:"all"`
	Tenants []Group `json:"tenants"`
	Sizes   []Group `json:"sizes"`
	// Resource that sizes and the series are reported in.
	Resource string `json:"resource"`
	// Demand of the resource, in hours, of all jobs.
	Demand float64 `json:"demandHours"`
	// Makespan from the first submission to the last end.
	Makespan Seconds `json:"makespanSeconds"`
	// Use of each resource that the root of the tree limits.
	Use      []Use    `json:"use"`
	Fairness Fairness `json:"fairness"`
	// Never lists why jobs were never released.
	Never []NeverReleased `json:"neverReleased"`
	// Distribution of waits over all jobs is reported at these waits.
	DistributionAt []Seconds `json:"distributionAtSeconds"`
	Series         Series    `json:"series"`
	// Warnings about the tree.
	Warnings []string `json:"warnings"`
	// Flushes counts wake-ups that the core lost: a defect unless it is 0.
	Flushes int `json:"lostWakeUps"`
}

// Group of jobs and how they fared.
type Group struct {
	Name string `json:"name"`
	// Jobs of the group, and how many of them were never released.
	Jobs  int `json:"jobs"`
	Never int `json:"neverReleased"`
	// The waits of those that were.
	Mean Seconds `json:"waitMeanSeconds"`
	P50  Seconds `json:"waitP50Seconds"`
	P90  Seconds `json:"waitP90Seconds"`
	P99  Seconds `json:"waitP99Seconds"`
	Max  Seconds `json:"waitMaxSeconds"`
	// Slowdown is the mean bounded slowdown.
	Slowdown float64 `json:"boundedSlowdownMean"`
	// Hours of the report's resource that the jobs used.
	Hours float64 `json:"resourceHours"`
	// Distribution is the part of the jobs that waited at most as long, for each of
	// the report's DistributionAt.
	Distribution []float64 `json:"distribution"`
}

// Seconds is a time, written in seconds.
type Seconds time.Duration

// MarshalJSON writes a number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return []byte(s.decimal()), nil }

// Of makes the report on a run of the scenario.
func Of(scenario *simulator.Scenario, result *simulator.Result, opts Options) *Report {
	m := measure(scenario, result, opts.Resource)
	r := &Report{
		Name:           opts.Name,
		Resource:       opts.Resource,
		Demand:         m.demand(),
		Makespan:       Seconds(m.end - m.first),
		DistributionAt: grid(m.longest),
		Use:            m.use(scenario.Tree),
		Never:          m.never(),
		Warnings:       result.Warnings,
		Flushes:        result.Flushes,
	}
	r.All = m.group("all", m.all(), r.DistributionAt)
	r.Tenants = m.groups(func(j *job) string { return j.Namespace }, r.DistributionAt)
	r.Sizes = m.bySize(r.DistributionAt)
	r.Fairness = m.fairness(scenario.Tree, r.Tenants)
	r.Series = m.series(scenario.Tree)
	return r
}
