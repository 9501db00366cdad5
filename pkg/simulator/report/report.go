// Package report computes the statistics of a simulator run: how long jobs waited, how much
// quota was used and how fairly it was shared.
//
// Terms. A wait is the time from the submission of a job to its first release. A job that was
// never released has no wait and is counted separately. Percentiles use the nearest rank:
// P90 is the shortest wait that at least 90 % of the jobs did not exceed. The bounded
// slowdown of a job is the time from its submission to its end, divided by its run time, at
// least 1, where a run of less than 10 seconds counts as 10 seconds. Without evictions, this
// is (wait + run) / run. Time that a job ran before an eviction is lost if it ran again;
// it counts as use of quota. Makespan is the time from the first submission to the last end. The
// shortfall of a group is the difference between its min and its use while jobs of the group
// that fit in the min waited, and at most what these jobs request.
//
// Invariants. The same outcomes give the same report, independent of the order of jobs: sums
// are integers. No value is NaN or infinite.
package report

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator"
)

// Options are the options of a report.
type Options struct {
	// Name is the name of the report, such as the policy.
	Name string
	// Resource is the resource that measures the size of jobs and is tracked over time.
	Resource string
}

// Report is the report on one run.
type Report struct {
	Name string `json:"name"`
	// All covers all jobs, Tenants and Sizes the jobs of each tenant and size.
	All     Group   `json:"all"`
	Tenants []Group `json:"tenants"`
	Sizes   []Group `json:"sizes"`
	// Resource is the resource of sizes and series.
	Resource string `json:"resource"`
	// Demand is the demand of all jobs for the resource, in hours.
	Demand float64 `json:"demandHours"`
	// Makespan is the time from the first submission to the last end.
	Makespan Seconds `json:"makespanSeconds"`
	// Use is the use of each resource that the root of the tree limits.
	Use      []Use    `json:"use"`
	Fairness Fairness `json:"fairness"`
	// Never lists why jobs were never released.
	Never []NeverReleased `json:"neverReleased"`
	// DistributionAt are the waits of the points of each Distribution.
	DistributionAt []Seconds `json:"distributionAtSeconds"`
	Series         Series    `json:"series"`
	// Warnings are warnings about the tree.
	Warnings []string `json:"warnings"`
	// Flushes counts lost wake-ups of the core. A value above 0 indicates a defect.
	Flushes int `json:"lostWakeUps"`
}

// Group contains the statistics of a group of jobs.
type Group struct {
	Name string `json:"name"`
	// Jobs is the number of jobs, Never the number of those that were never released.
	Jobs  int `json:"jobs"`
	Never int `json:"neverReleased"`
	// The waits of released jobs, until their first release.
	Mean Seconds `json:"waitMeanSeconds"`
	P50  Seconds `json:"waitP50Seconds"`
	P90  Seconds `json:"waitP90Seconds"`
	P99  Seconds `json:"waitP99Seconds"`
	Max  Seconds `json:"waitMaxSeconds"`
	// Slowdown is the mean bounded slowdown.
	Slowdown float64 `json:"boundedSlowdownMean"`
	// Hours is the use of the resource of the report, in hours, including what was lost.
	Hours float64 `json:"resourceHours"`
	// Evictions is nil if no job is evicted in this scenario.
	Evictions *Evictions `json:"evictions,omitempty"`
	// Distribution is the fraction of the jobs that waited at most as long as each value of DistributionAt.
	Distribution []float64 `json:"distribution"`
}

// Seconds is a duration that is written in seconds.
type Seconds time.Duration

// MarshalJSON writes a number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return []byte(s.decimal()), nil }

// Of returns the report on a run of the scenario.
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
