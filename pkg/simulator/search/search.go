// Package search finds the reserveAfter that suits past jobs: it tries each value on the first half of a trace, and
// checks the best one on the second half.
package search

import (
	"context"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
)

// Score shows how long jobs wait with a reserveAfter.
type Score struct {
	ReserveAfter   time.Duration
	Mean, P90, Max report.Seconds
}

// Found is the result of a search.
type Found struct {
	// First has the score of each value on the first half. Best is the best of them, and Second the score of its value on
	// the second half.
	First        []Score
	Best, Second Score
}

// Halves splits the jobs of a trace, which are sorted by submission, into halves. In each, submission times start at
// 0.
func Halves(jobs []simulator.Job) (first, second []simulator.Job) {
	half := len(jobs) / 2
	first = jobs[:half]
	for _, j := range jobs[half:] {
		j.Submitted -= jobs[half].Submitted
		second = append(second, j)
	}
	return first, second
}

// Of returns the score of a scenario.
func Of(ctx context.Context, scenario simulator.Scenario) (Score, error) {
	result, err := simulator.Run(ctx, scenario)
	if err != nil {
		return Score{}, err
	}
	all := report.Of(&scenario, result, report.Options{Resource: "jobs"}).All
	return Score{scenario.ReserveAfter, all.Mean, all.P90, all.Max}, nil
}

// ReserveAfter tries the values. The best one has the smallest product of the mean and the longest wait, so a percent
// of one counts as much as a percent of the other.
func ReserveAfter(ctx context.Context, scenario simulator.Scenario, values []time.Duration) (*Found, error) {
	first, second := Halves(scenario.Jobs)
	found := &Found{}
	scenario.Jobs = first
	for i, value := range values {
		scenario.ReserveAfter = value
		score, err := Of(ctx, scenario)
		if err != nil {
			return nil, err
		}
		found.First = append(found.First, score)
		if i == 0 || float64(score.Mean)*float64(score.Max) < float64(found.Best.Mean)*float64(found.Best.Max) {
			found.Best = score
		}
	}
	scenario.Jobs, scenario.ReserveAfter = second, found.Best.ReserveAfter
	var err error
	found.Second, err = Of(ctx, scenario)
	return found, err
}
