package resources

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// rateDigits is the maximum number of digits of a rate before and after the point.
const rateDigits = 9

// Rate is an exact decimal above 0, such as 1.2. Equal rates are equal with ==. The zero Rate is 1.
type Rate struct {
	// The rate is 1 + offset/10^places; places is the fewest possible.
	offset int64
	places int
}

// ParseRate parses a decimal such as "1", "1.25" or ".5". It must be above 0, without a sign or an
// exponent, with at most nine digits before and nine after the point.
func ParseRate(s string) (Rate, error) {
	whole, fraction, point := strings.Cut(s, ".")
	if !digits(whole) || !digits(fraction) || (whole == "" || point) && fraction == "" {
		return Rate{}, fmt.Errorf("rate %q is not a decimal number such as 1 or 1.25", s)
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	if len(whole) > rateDigits || len(fraction) > rateDigits {
		return Rate{}, fmt.Errorf("rate %q must have at most %d digits before and after the point", s, rateDigits)
	}
	value, err := strconv.ParseInt("0"+whole+fraction, 10, 64)
	if err != nil || value == 0 {
		return Rate{}, fmt.Errorf("rate %q must be greater than 0", s)
	}
	places := len(fraction)
	return Rate{offset: value - powerOfTen(places), places: places}, nil
}

// Floor returns the exact product of the value and the rate, rounded down and clamped to an int64.
func (r Rate) Floor(value int64) int64 {
	unit := powerOfTen(r.places)
	if value >= 0 {
		quotient, _, fits := mulDiv(uint64(value), uint64(unit+r.offset), uint64(unit))
		if !fits || quotient > math.MaxInt64 {
			return math.MaxInt64
		}
		return int64(quotient)
	}
	quotient, rest, fits := mulDiv(-uint64(value), uint64(unit+r.offset), uint64(unit))
	if !fits || quotient >= 1<<63 {
		return math.MinInt64
	}
	if rest != 0 {
		quotient++
	}
	return int64(-quotient)
}

// String returns the shortest text that ParseRate parses as this rate.
func (r Rate) String() string {
	unit := powerOfTen(r.places)
	value := unit + r.offset
	s := strconv.FormatInt(value/unit, 10)
	if r.places > 0 {
		s += fmt.Sprintf(".%0*d", r.places, value%unit)
	}
	return s
}

// mulDiv returns a*b/c with its remainder, and whether the quotient fits.
func mulDiv(a, b, c uint64) (quotient, rest uint64, fits bool) {
	high, low := bits.Mul64(a, b)
	if high >= c {
		return 0, 0, false
	}
	quotient, rest = bits.Div64(high, low, c)
	return quotient, rest, true
}

func powerOfTen(places int) int64 {
	power := int64(1)
	for range places {
		power *= 10
	}
	return power
}

func digits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// Reaching returns the smallest value whose Floor is at least the wanted one, and false if there is none in an int64.
func (r Rate) Reaching(wanted int64) (value int64, reached bool) {
	if r.Floor(math.MaxInt64) < wanted {
		return 0, false
	}
	low, high := int64(0), int64(math.MaxInt64)
	for low < high {
		if middle := low + (high-low)/2; r.Floor(middle) >= wanted {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, true
}
