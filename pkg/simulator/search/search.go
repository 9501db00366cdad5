// Package search finds the settings that suit past jobs: it tries each on the first half of a trace, and checks the
// best ones on the second half.
package search

import (
	"context"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
)

// Settings are what a search tries.
type Settings struct {
	ReserveAfter time.Duration
	// Min is the percentage of each min of the tree.
	Min int
}

// Score shows how long jobs wait with some settings.
type Score struct {
	Settings
	Mean, P90, Max report.Seconds
}

// Found is the result of a search.
type Found struct {
	// First has the scores of all settings on the first half. Best is the best of them, and Second the score of its
	// settings on the second half.
	First        []Score
	Best, Second Score
}

// Of returns the score of a scenario for all jobs but the first skipped ones.
func Of(ctx context.Context, scenario simulator.Scenario, skipped int) (Score, error) {
	result, err := simulator.Run(ctx, scenario)
	if err != nil {
		return Score{}, err
	}
	// Interruptions have the indexes of all jobs. They do not change first waits.
	scenario.Jobs, result.Outcomes, result.Interrupted = scenario.Jobs[skipped:], result.Outcomes[skipped:], nil
	all := report.Of(&scenario, result, report.Options{Resource: "jobs"}).All
	return Score{Mean: all.Mean, P90: all.P90, Max: all.Max}, nil
}

// Best tries the settings. The best ones have the smallest product of the mean and the longest wait, so a percent of one
// counts as much as a percent of the other. The second half follows the first, because a cluster in use is not empty.
func Best(ctx context.Context, scenario simulator.Scenario, tries []Settings) (*Found, error) {
	half := len(scenario.Jobs) / 2
	of := func(s Settings, jobs []simulator.Job, skipped int) (Score, error) {
		with := scenario
		with.Jobs, with.ReserveAfter, with.Tree = jobs, s.ReserveAfter, quotatree.WithMins(scenario.Tree, s.Min)
		score, err := Of(ctx, with, skipped)
		score.Settings = s
		return score, err
	}
	found := &Found{}
	for i, s := range tries {
		score, err := of(s, scenario.Jobs[:half], 0)
		if err != nil {
			return nil, err
		}
		found.First = append(found.First, score)
		if i == 0 || float64(score.Mean)*float64(score.Max) < float64(found.Best.Mean)*float64(found.Best.Max) {
			found.Best = score
		}
	}
	var err error
	found.Second, err = of(found.Best.Settings, scenario.Jobs, half)
	return found, err
}
