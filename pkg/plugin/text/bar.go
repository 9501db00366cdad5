package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Bar shows how much of a limit is used.
type Bar struct {
	// Used is the amount in use, Borrowed is the borrowed part of it, and Max is the limit. Without a limit, Max is 0 and
	// the bar is empty.
	Used, Borrowed, Max float64
}

// Draw returns the bar with the given number of characters: █ is used within the guarantee, ▒ is borrowed, and · is
// free. Any use is at least one character.
func (b Bar) Draw(width int) string {
	if b.Max <= 0 || width <= 0 {
		return ""
	}
	own := cellsOf(b.Used-b.Borrowed, b.Max, width)
	borrowed := min(cellsOf(b.Borrowed, b.Max, width), width-own)
	return strings.Repeat("█", own) + strings.Repeat("▒", borrowed) + strings.Repeat("·", width-own-borrowed)
}

func cellsOf(part, of float64, width int) int {
	if part <= 0 {
		return 0
	}
	return min(max(int(part/of*float64(width)+0.5), 1), width)
}

// Age returns how long ago the time was, as kubectl shows it.
func Age(since, now time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(since), 0))
}

// Rough returns a duration to the minute, such as "45 min" or "2 h 15 min", and to the day from 48 hours on. It is at
// least a minute.
func Rough(d time.Duration) string {
	minutes := max(int(d.Round(time.Minute)/time.Minute), 1)
	hours := minutes / 60
	switch {
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	case hours >= 48:
		return Count(int(d.Round(24*time.Hour)/(24*time.Hour)), "day")
	case minutes%60 == 0:
		return fmt.Sprintf("%d h", hours)
	default:
		return fmt.Sprintf("%d h %d min", hours, minutes%60)
	}
}

// Count returns the number with the noun: "1 job", "2 jobs".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
