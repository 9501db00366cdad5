package report

import (
	"slices"
	"time"
)

// Durations are measured times.
type Durations []time.Duration

// Percentile returns the smallest duration that is not exceeded by a fraction p (0 to 1) of all. It
// returns 0 without durations.
func (d Durations) Percentile(p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[rank(len(sorted), p)]
}

// rank returns the index of a percentile, from 0.
func rank(count int, p float64) int {
	n := int(p * float64(count))
	if float64(n) < p*float64(count) {
		n++
	}
	return min(max(n, 1), count) - 1
}

// Mean returns the mean, or 0 without durations.
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

// LongerThan returns the number of durations above a limit.
func (d Durations) LongerThan(limit time.Duration) int {
	count := 0
	for _, one := range d {
		if one > limit {
			count++
		}
	}
	return count
}

// Spread adds the count, mean, percentiles and maximum of durations.
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

// Milliseconds returns a duration in milliseconds, with fractions.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// MiB returns bytes in MiB.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }
