package report

import (
	"slices"
	"time"
)

// Durations are measured times.
type Durations []time.Duration

// Percentile is the smallest duration that p of all, between 0 and 1, do not
// exceed; 0 when there is none.
func (d Durations) Percentile(p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[rank(len(sorted), p)]
}

// rank is the index of a percentile among so many, counted from 0.
func rank(count int, p float64) int {
	n := int(p * float64(count))
	if float64(n) < p*float64(count) {
		n++
	}
	return min(max(n, 1), count) - 1
}

// Mean is 0 when there is none.
func (d Durations) Mean() time.Duration {
	if len(d) == 0 {
		return 0
	}
	var sum time.Duration
	for _, one := range d {
		sum += one
	}
	return sum / time.Duration(len(d))
}

// LongerThan counts those above a limit.
func (d Durations) LongerThan(limit time.Duration) int {
	count := 0
	for _, one := range d {
		if one > limit {
			count++
		}
	}
	return count
}

// Spread adds how many durations there are, their mean, percentiles and maximum.
func (s *Section) Spread(d Durations) {
	s.Count("measured", len(d))
	if len(d) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(d))
	s.Add("mean", Milliseconds(d.Mean()), "ms", nil)
	for _, p := range []struct {
		name string
		part float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}} {
		s.Add(p.name, Milliseconds(sorted[rank(len(sorted), p.part)]), "ms", nil)
	}
}

// Milliseconds of a duration, with their fractions.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// MiB of so many bytes.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }
