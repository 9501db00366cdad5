package report

import (
	"math/bits"
	"time"
)

// area is a sum of products, as of amounts and times, in 128 bits: a sum of 64 would
// overflow with bytes of memory.
type area struct {
	high, low uint64
}

// add a product; what is below zero counts as zero.
func (a *area) add(amount, by int64) {
	high, low := bits.Mul64(uint64(max(amount, 0)), uint64(max(by, 0)))
	var carry uint64
	a.low, carry = bits.Add64(a.low, low, 0)
	a.high, _ = bits.Add64(a.high, high, carry)
}

// over is the mean of the sum of n numbers of 64 bits.
func (a area) over(n int) int64 {
	if n == 0 || a.high >= uint64(n) {
		return 0
	}
	mean, _ := bits.Div64(a.high, a.low, uint64(n))
	return int64(mean)
}

// float is the nearest number.
func (a area) float() float64 {
	return float64(a.high)*(1<<64) + float64(a.low)
}

// hours of an amount that was added by nanoseconds.
func (a area) hours() float64 {
	return a.float() / float64(time.Hour)
}
