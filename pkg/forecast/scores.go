package forecast

import (
	"math"
	"time"
)

const (
	// mostScored is how many estimates are remembered. After leastScored, they determine the range of an estimate.
	mostScored, leastScored = 500, 20
	// firstFactor is how far the range extends to both sides until then.
	firstFactor = 2
	// quantile is which part of the remembered estimates was outside of the range at each side.
	quantile = 0.1
	// worst is the largest error that is remembered.
	worst = 50
	// slack is added to all waits before they are compared, so that errors of seconds do not count.
	slack = time.Minute
)

// Estimate is how much longer a job waits. All durations are rounded, because an estimate reveals something about
// other jobs, and would promise too much otherwise.
type Estimate struct {
	Wait time.Duration
	// Earliest and Latest are the range.
	Earliest, Latest time.Duration
}

// Holds reports whether the job waited as long as the range says.
func (e Estimate) Holds(waited time.Duration) bool {
	return waited >= e.Earliest-slack && waited <= e.Latest+slack
}

// Scores are the last errors of predictions. The zero value has none.
type Scores struct {
	// errors are the logarithms of how many times longer than predicted jobs waited. low and high are their quantiles.
	errors    ring
	low, high float64
}

// Started records how long a job waited after a prediction.
func (s *Scores) Started(predicted, waited time.Duration) {
	s.errors.most = mostScored
	times := (float64(max(waited, 0)) + float64(slack)) / (float64(max(predicted, 0)) + float64(slack))
	s.errors.add(math.Log(min(max(times, 1.0/worst), worst)))
	sorted := s.errors.inOrder()
	at := int(quantile * float64(len(sorted)))
	s.low, s.high = min(sorted[at], 0), max(sorted[len(sorted)-1-at], 0)
}

// Estimate returns the estimate for a job that is predicted to wait for some more time.
func (s *Scores) Estimate(predicted time.Duration) Estimate {
	low, high := s.low, s.high
	if len(s.errors.values) < leastScored {
		low, high = -math.Log(firstFactor), math.Log(firstFactor)
	}
	predicted = max(predicted, 0)
	at := func(log float64) time.Duration {
		return max(time.Duration(math.Exp(log)*float64(predicted+slack))-slack, 0)
	}
	return Estimate{Wait: round(predicted), Earliest: round(at(low)), Latest: round(at(high))}
}

// round rounds a duration to a whole minute or, the longer it is, to more, and never to 0.
func round(d time.Duration) time.Duration {
	const hour, day = time.Hour, 24 * time.Hour
	step := day
	switch {
	case d < 10*time.Minute:
		step = time.Minute
	case d < hour:
		step = 5 * time.Minute
	case d < 4*hour:
		step = 15 * time.Minute
	case d < 2*day:
		step = hour
	case d < 7*day:
		step = 6 * hour
	}
	return max(d.Round(step), time.Minute)
}
