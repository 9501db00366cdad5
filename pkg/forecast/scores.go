package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// mostScored is the maximum number of remembered predictions. Once there are leastScored, the similar ones determine
	// an estimate.
	mostScored, leastScored = 500, 20
	// similar is the number of remembered predictions that determine an estimate.
	similar = 45
	// byLength is the weight of declared lengths in the distance between predictions, relative to the predicted waits.
	byLength = 0.5
	// firstFactor is the factor by which the range extends to both sides before there are leastScored predictions.
	firstFactor = 2
	// quantile is the fraction of similar predictions that lies outside the range on each side.
	quantile = 0.1
	// worst is the largest error that is remembered, as a factor.
	worst = 50
	// slack is added to all waits before they are compared, so that errors of seconds do not count.
	slack = time.Minute
)

// Estimate says how much longer a job waits. All durations are rounded, so that an estimate reveals less about other
// jobs and does not promise too much.
type Estimate struct {
	Wait time.Duration
	// Earliest and Latest are the range.
	Earliest, Latest time.Duration
}

// Holds reports whether the wait was in the range.
func (e Estimate) Holds(waited time.Duration) bool {
	return waited >= e.Earliest-slack && waited <= e.Latest+slack
}

// Scores are the errors of the last predictions. The zero value has none.
//
// Predictions ignore jobs that are submitted later. In a queue where shorter jobs pass longer ones, the number that
// pass depends on how long the job waits and how long it may run. There, an estimate corrects the prediction by the
// errors of the predictions that were most similar in both. Elsewhere, errors determine only the range.
type Scores struct {
	scored []score
	next   int
}

// score is a past prediction in logarithms: the predicted wait, the length of the job, and the ratio of the actual
// wait to the predicted one.
type score struct{ predicted, length, error float64 }

func logOf(d time.Duration) float64 { return math.Log(float64(max(d, 0)) + float64(slack)) }

// Started records how long a job waited after a prediction. length is how long it may run if shorter jobs pass it;
// otherwise 0.
func (s *Scores) Started(predicted, length, waited time.Duration) {
	most := math.Log(worst)
	now := score{logOf(predicted), logOf(length), min(max(logOf(waited)-logOf(predicted), -most), most)}
	if len(s.scored) < mostScored {
		s.scored = append(s.scored, now)
		return
	}
	s.scored[s.next] = now
	s.next = (s.next + 1) % mostScored
}

// Estimate returns the estimate for a job with a predicted wait. length is as in Started.
func (s *Scores) Estimate(predicted, length time.Duration) Estimate {
	low, middle, high := -math.Log(firstFactor), 0.0, math.Log(firstFactor)
	if len(s.scored) >= leastScored {
		scored := slices.Clone(s.scored)
		if length > 0 {
			scored = nearest(scored, logOf(predicted), logOf(length))
		}
		slices.SortFunc(scored, func(a, b score) int { return cmp.Compare(a.error, b.error) })
		if length > 0 {
			middle = scored[len(scored)/2].error
		}
		at := int(quantile * float64(len(scored)))
		low, high = min(scored[at].error, middle), max(scored[len(scored)-1-at].error, middle)
	}
	at := func(error float64) time.Duration {
		return round(time.Duration(math.Exp(error)*float64(max(predicted, 0)+slack)) - slack)
	}
	return Estimate{Wait: at(middle), Earliest: at(low), Latest: at(high)}
}

// nearest returns the most similar predictions. It reorders scored.
func nearest(scored []score, predicted, length float64) []score {
	distance := func(o score) float64 {
		return (o.predicted-predicted)*(o.predicted-predicted) + byLength*(o.length-length)*(o.length-length)
	}
	slices.SortFunc(scored, func(a, b score) int { return cmp.Compare(distance(a), distance(b)) })
	return scored[:min(similar, len(scored))]
}

// round rounds a duration to a whole minute, or more coarsely the longer it is, but never to 0.
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
