package forecast

import "time"

const (
	// FirstOverrun is the overrun until the first jobs have ended.
	FirstOverrun = 5
	// judged is after how many jobs the overrun is computed.
	judged = 20
	// tolerance is by which factor the overrun must be wrong before it changes: each change costs a new order of the queue.
	tolerance = 1.25
)

// Overrun is how many times longer than declared the jobs of a queue usually run. It makes times comparable that are
// declared by different owners: who declares less than the truth gains nothing. The zero value knows no jobs.
type Overrun struct {
	ratios ring
	ended  int
	factor float64
}

// Ended records that a job has run. It reports whether the factor has changed.
func (o *Overrun) Ended(expected, ran time.Duration) (changed bool) {
	o.ratios.most = mostRemembered
	o.ratios.add(ran.Seconds() / expected.Seconds())
	if o.ended++; o.ended%judged != 0 {
		return false
	}
	sorted := o.ratios.inOrder()
	now := max(sorted[(9*len(sorted)+9)/10-1], 1) // the 90th percentile; below 1, cautious jobs would excuse others
	if was := o.Factor(); now <= was*tolerance && now >= was/tolerance {
		return false
	}
	o.factor = now
	return true
}

// Factor is what a declared time is multiplied by, at least 1.
func (o *Overrun) Factor() float64 {
	if o.factor == 0 {
		return FirstOverrun
	}
	return o.factor
}
