package resources

import (
	"cmp"
	"math"
	"math/bits"
)

// Sum adds amounts in 128 bits, so that it cannot overflow and subtraction is always exact. The
// zero Sum is 0.
type Sum struct {
	high int64
	low  uint64
}

// Plus returns the sum plus one amount.
func (s Sum) Plus(v int64) Sum { return s.Add(Sum{high: v >> 63, low: uint64(v)}) }

// Minus returns the sum minus one amount.
func (s Sum) Minus(v int64) Sum { return s.Sub(Sum{high: v >> 63, low: uint64(v)}) }

// Add returns the sum of both.
func (s Sum) Add(t Sum) Sum {
	low, carry := bits.Add64(s.low, t.low, 0)
	return Sum{high: s.high + t.high + int64(carry), low: low}
}

// Sub returns the difference of both.
func (s Sum) Sub(t Sum) Sum {
	low, borrow := bits.Sub64(s.low, t.low, 0)
	return Sum{high: s.high - t.high - int64(borrow), low: low}
}

// Times returns the sum multiplied by a number, which must not be negative.
func (s Sum) Times(n int64) Sum {
	high, low := bits.Mul64(s.low, uint64(n))
	return Sum{high: s.high*n + int64(high), low: low}
}

// Float returns the sum, which must not be negative, as a float64. A larger sum never has a smaller float.
func (s Sum) Float() float64 { return math.Ldexp(float64(s.high), 64) + float64(s.low) }

// Compare returns a negative number if s is smaller, and 0 if both are equal.
func (s Sum) Compare(t Sum) int {
	return cmp.Or(cmp.Compare(s.high, t.high), cmp.Compare(s.low, t.low))
}

// Below returns how far the sum is below the limit, clamped to an int64.
func (s Sum) Below(limit int64) int64 { return Sum{}.Plus(limit).Sub(s).Clamp() }

// Exceeds reports whether the sum is larger than an amount, which must not be negative.
func (s Sum) Exceeds(v int64) bool { return s.high > 0 || s.high == 0 && s.low > uint64(v) }

// Clamp returns the sum or the nearest int64.
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

// AddTimes returns sum + value*times, capped at the largest int64. No argument may be negative.
func AddTimes(sum, value int64, times int) int64 {
	if value > 0 && int64(times) > (math.MaxInt64-sum)/value {
		return math.MaxInt64
	}
	return sum + value*int64(times)
}
