package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// mostScored is how many predictions are remembered. After leastScored, the similar ones among them determine an
	// estimate.
	mostScored, leastScored = 500, 20
	// similar is how many of the remembered predictions an estimate is made from.
	similar = 45
	// byLength is how much the declared lengths of two jobs make their predictions differ, relative to the predictions.
	byLength = 0.5
	// firstFactor is how far the range extends to both sides until then.
	firstFactor = 2
	// quantile is which part of the similar predictions was outside of the range at each side.
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

// Scores are the errors of the last predictions. The zero value has none.
//
// A prediction does not know which jobs will be submitted later. In a queue in which short jobs pass longer ones, how many
// pass depends on how long the job waits and on how long it may run. There, an estimate corrects the prediction by the
// errors of those that were the most similar in both. Elsewhere, all errors only determine its range.
type Scores struct {
	scored []score
	next   int
}

// score is a prediction as logarithms: how long the job was predicted to wait, its length, and how many times longer it
// waited.
type score struct{ predicted, length, error float64 }

func logOf(d time.Duration) float64 { return math.Log(float64(max(d, 0)) + float64(slack)) }

// Started records how long a job waited after a prediction. length is how long it may run, if shorter jobs pass it, else 0.
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

// Estimate returns the estimate for a job that is predicted to wait for some more time. length is as in Started.
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

// nearest returns the most similar of the predictions. It changes their order.
func nearest(scored []score, predicted, length float64) []score {
	distance := func(o score) float64 {
		return (o.predicted-predicted)*(o.predicted-predicted) + byLength*(o.length-length)*(o.length-length)
	}
	slices.SortFunc(scored, func(a, b score) int { return cmp.Compare(distance(a), distance(b)) })
	return scored[:min(similar, len(scored))]
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
