package queue

import (
	"cmp"
	"math"
	"math/bits"
)

// ShortestFirst tries the items with the smallest Length first, and lets items pass one that was refused.
var ShortestFirst = &Policy{Name: "ShortestFirst", ByLimit: true, Before: func(a, b *Item) bool {
	if a, b := a.length(), b.length(); a != b {
		return a < b
	}
	return a.Older(b)
}}

// Length is how long an item may run, or is expected to run, as a class: a class has times within a factor of about 1.2.
// 0 means unknown.
type Length uint8

// UnknownSeconds is the length assumed for items of unknown length. If they came last, they would wait until no other
// item is left.
const UnknownSeconds = 12 * 60 * 60

// LengthOf returns the class of a limit in seconds.
func LengthOf(seconds int32) Length {
	if seconds <= 0 {
		return 0
	}
	n := bits.Len32(uint32(seconds))
	return Length(4*n) + Length(uint32(seconds)<<(32-n)>>29&3) // the two bits that follow the first one
}

// NewItem returns an item that is in no queue, to compare it with those that are.
func NewItem(key string, priority int32, submitted int64, length Length) *Item {
	return &Item{Key: key, Priority: priority, Submitted: submitted, shape: &Shape{Length: length}}
}

func (i *Item) length() Length {
	if i.shape == nil {
		return LengthOf(UnknownSeconds)
	}
	return i.shape.Length.Rank()
}

// expected marks a length that is not enforced. Such items do not share shapes with items that have a limit.
const expected Length = 1 << 7

// ExpectedLength returns the class of a time in seconds that is not enforced.
func ExpectedLength(seconds float64) Length {
	return LengthOf(int32(min(max(seconds, 1), math.MaxInt32))) | expected
}

// Rank returns the length by which items are ordered.
func (l Length) Rank() Length { return cmp.Or(l&^expected, LengthOf(UnknownSeconds)) }
