package resources

import (
	"cmp"
	"math"
	"math/bits"
)

// Sum adds amounts in 128 bits, so that no number of them can overflow it, and
// taking one out again is always exact. The zero Sum is 0.
type Sum struct {
	high int64
	low  uint64
}

// Plus is the sum with one amount more.
func (s Sum) Plus(v int64) Sum { return s.Add(Sum{high: v >> 63, low: uint64(v)}) }

// Minus is the sum with one amount less.
func (s Sum) Minus(v int64) Sum { return s.Sub(Sum{high: v >> 63, low: uint64(v)}) }

// Add is the sum of both.
func (s Sum) Add(t Sum) Sum {
	low, carry := bits.Add64(s.low, t.low, 0)
	return Sum{high: s.high + t.high + int64(carry), low: low}
}

// Sub is the difference of both.
func (s Sum) Sub(t Sum) Sum {
	low, borrow := bits.Sub64(s.low, t.low, 0)
	return Sum{high: s.high - t.high - int64(borrow), low: low}
}

// Compare is negative when s is the smaller, 0 when both are equal.
func (s Sum) Compare(t Sum) int {
	return cmp.Or(cmp.Compare(s.high, t.high), cmp.Compare(s.low, t.low))
}

// Below is how far the sum is below the limit, clamped to an int64.
func (s Sum) Below(limit int64) int64 { return Sum{}.Plus(limit).Sub(s).Clamp() }

// Clamp is the sum, or the nearest int64.
func (s Sum) Clamp() int64 {
	switch {
	case s.high == int64(s.low)>>63:
		return int64(s.low)
	case s.high < 0:
		return math.MinInt64
	default:
		return math.MaxInt64
	}
}

// AddTimes is the sum and so many times the value, at most the greatest int64. None of
// the three is negative.
func AddTimes(sum, value int64, times int) int64 {
	if value > 0 && int64(times) > (math.MaxInt64-sum)/value {
		return math.MaxInt64
	}
	return sum + value*int64(times)
}
