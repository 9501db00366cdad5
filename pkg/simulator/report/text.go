package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// decimal returns the number of seconds, exact to the microsecond.
func (s Seconds) decimal() string {
	return strconv.FormatFloat(float64(time.Duration(s).Round(time.Microsecond)/time.Microsecond)/1e6, 'f', -1, 64)
}

// String returns the time in a readable form with two or three digits: "45 s", "2.5 min",
// "31 h", "12.5 d".
func (s Seconds) String() string {
	d := time.Duration(s)
	switch {
	case d == 0:
		return "0"
	case d < time.Minute:
		return digits(d.Seconds()) + " s"
	case d < time.Hour:
		return digits(d.Minutes()) + " min"
	case d < 100*time.Hour:
		return digits(d.Hours()) + " h"
	default:
		return digits(d.Hours()/24) + " d"
	}
}

// digits formats a number with at most two decimals below 1, at most one decimal below 100,
// and none above.
func digits(v float64) string {
	switch {
	case v < 1:
		return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
	case v < 99.95:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	default:
		return Count(int64(math.Round(v)))
	}
}

// Count formats a number with commas between thousands.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Amount formats an amount, from 10 million on with the suffix M or G.
func Amount(v float64) string {
	switch {
	case v >= 1e10:
		return digits(v/1e9) + "G"
	case v >= 1e7:
		return digits(v/1e6) + "M"
	default:
		return digits(v)
	}
}

func percent(part float64) string {
	return fmt.Sprintf("%.1f %%", 100*part)
}

// plural formats a count with its noun. Without a plural form, it appends an s.
func plural(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return Count(int64(n)) + " " + many[0]
	default:
		return Count(int64(n)) + " " + one + "s"
	}
}
