package report

import (
	"math/bits"
	"time"
)

// area is a sum of products of amounts and times in 128 bits, because 64 bits would overflow
// with bytes of memory.
type area struct {
	high, low uint64
}

// add adds a product. Negative values count as zero.
func (a *area) add(amount, by int64) {
	high, low := bits.Mul64(uint64(max(amount, 0)), uint64(max(by, 0)))
	var carry uint64
	a.low, carry = bits.Add64(a.low, low, 0)
	a.high, _ = bits.Add64(a.high, high, carry)
}

// over returns the mean of n numbers of 64 bits whose sum is the area.
func (a area) over(n int) int64 {
	if n == 0 || a.high >= uint64(n) {
		return 0
	}
	mean, _ := bits.Div64(a.high, a.low, uint64(n))
	return int64(mean)
}

func (a area) float() float64 {
	return float64(a.high)*(1<<64) + float64(a.low)
}

// hours returns the area in hours, if times were added in nanoseconds.
func (a area) hours() float64 {
	return a.float() / float64(time.Hour)
}
