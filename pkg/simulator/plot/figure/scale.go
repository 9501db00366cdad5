package figure

import (
	"math"
	"strconv"
	"time"
)

// Tick is a tick of an axis.
type Tick struct {
	At    float64
	Label string
}

// Amounts returns ticks at round numbers from 0 to at least the largest value, with their labels.
func Amounts(greatest float64, label func(float64) string) []Tick {
	const most = 5
	step := 1.0
	if greatest > 0 {
		step = math.Pow(10, math.Floor(math.Log10(greatest/most)))
	}
	for _, factor := range []float64{1, 2, 5, 10} {
		if greatest <= step*factor*most {
			step *= factor
			break
		}
	}
	var ticks []Tick
	for i := 0; ; i++ {
		at := float64(i) * step
		ticks = append(ticks, Tick{at, label(at)})
		if at >= greatest && i > 0 {
			return ticks
		}
	}
}

// steps are the steps of a time axis and the units of their labels.
var steps = []struct {
	step, unit time.Duration
	name       string
}{
	{time.Second, time.Second, "seconds"}, {5 * time.Second, time.Second, "seconds"}, {15 * time.Second, time.Second, "seconds"},
	{time.Minute, time.Minute, "minutes"}, {5 * time.Minute, time.Minute, "minutes"}, {15 * time.Minute, time.Minute, "minutes"},
	{time.Hour, time.Hour, "hours"}, {3 * time.Hour, time.Hour, "hours"}, {6 * time.Hour, time.Hour, "hours"}, {12 * time.Hour, time.Hour, "hours"},
	{day, day, "days"}, {2 * day, day, "days"}, {7 * day, day, "days"}, {14 * day, day, "days"}, {30 * day, day, "days"}, {90 * day, day, "days"},
	{365 * day, 365 * day, "years"},
}

const day = 24 * time.Hour

// Times returns ticks from 0 to at most the end, and the unit of their labels.
func Times(end time.Duration) ([]Tick, string) {
	const most = 10
	chosen := steps[len(steps)-1]
	for _, s := range steps {
		if end/s.step <= most {
			chosen = s
			break
		}
	}
	step := chosen.step
	for end/step > most {
		step *= 2
	}
	var ticks []Tick
	for at := time.Duration(0); at <= end && at >= 0; at += step {
		ticks = append(ticks, Tick{float64(at), strconv.FormatInt(int64(at/chosen.unit), 10)})
	}
	return ticks, chosen.name
}

// Waits are the ticks of a logarithmic axis that starts at a second.
var Waits = []Tick{
	{float64(time.Second), "1 s"}, {float64(10 * time.Second), "10 s"}, {float64(time.Minute), "1 min"}, {float64(10 * time.Minute), "10 min"},
	{float64(time.Hour), "1 h"}, {float64(10 * time.Hour), "10 h"}, {float64(2 * day), "2 d"}, {float64(10 * day), "10 d"}, {float64(100 * day), "100 d"},
	{float64(3 * 365 * day), "3 years"}, {float64(30 * 365 * day), "30 years"},
}
