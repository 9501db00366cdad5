package report

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"strings"
	"time"
)

func (m *measured) all() []*job {
	jobs := make([]*job, len(m.jobs))
	for i := range m.jobs {
		jobs[i] = &m.jobs[i]
	}
	return jobs
}

// groups groups the jobs by the result of name, sorted by name.
func (m *measured) groups(name func(*job) string, at []Seconds) []Group {
	byName := map[string][]*job{}
	for i := range m.jobs {
		n := name(&m.jobs[i])
		byName[n] = append(byName[n], &m.jobs[i])
	}
	groups := make([]Group, 0, len(byName))
	for n, jobs := range byName {
		groups = append(groups, m.group(n, jobs, at))
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return groups
}

func (m *measured) group(name string, jobs []*job, at []Seconds) Group {
	g := Group{Name: name, Jobs: len(jobs)}
	var total, slowdowns, used area
	waits := make([]time.Duration, 0, len(jobs))
	for _, j := range jobs {
		if !j.Released {
			g.Never++
			continue
		}
		waits = append(waits, j.wait)
		total.add(int64(j.wait), 1)
		slowdowns.add(j.slowdown, 1)
		used.add(j.amount, int64(j.Runs+j.Lost))
	}
	slices.Sort(waits)
	g.Mean = Seconds(total.over(len(waits)))
	g.P50, g.P90, g.P99, g.Max = percentile(waits, 50), percentile(waits, 90), percentile(waits, 99), percentile(waits, 100)
	if len(waits) > 0 {
		g.Slowdown = slowdowns.float() / 1e6 / float64(len(waits))
	}
	g.Hours = used.hours() / one(m.resource)
	g.Distribution = distribution(waits, at)
	if m.evicting {
		g.Evictions = m.evictions(jobs)
	}
	return g
}

// percentile returns a percentile of sorted waits by nearest rank.
func percentile(waits []time.Duration, percent int) Seconds {
	if len(waits) == 0 {
		return 0
	}
	rank := (len(waits)*percent + 99) / 100
	return Seconds(waits[rank-1])
}

// gridPerDecade is the number of points of a distribution per factor of ten.
const gridPerDecade = 12

// grid returns 0, and waits from a second to the longest at equal distances on a logarithmic scale, rounded to
// milliseconds.
func grid(longest time.Duration) []Seconds {
	at := []Seconds{0}
	for decade := time.Second; ; decade *= 10 {
		for _, factor := range decadeSteps {
			// maxDecade prevents an overflow.
			point := Seconds(int64(decade/time.Millisecond) * factor / 1000 * int64(time.Millisecond))
			at = append(at, point)
			if time.Duration(point) >= longest || decade > maxDecade {
				return at
			}
		}
	}
}

// maxDecade is the end of the grid.
const maxDecade = 1_000_000_000 * time.Second

// decadeSteps are 1000 times ten to the power of 0/12 to 11/12.
var decadeSteps = [gridPerDecade]int64{1000, 1212, 1468, 1778, 2154, 2610, 3162, 3831, 4642, 5623, 6813, 8254}

func distribution(waits []time.Duration, at []Seconds) []float64 {
	parts := make([]float64, len(at))
	for i, t := range at {
		n := sort.Search(len(waits), func(k int) bool { return waits[k] > time.Duration(t) })
		if len(waits) > 0 {
			parts[i] = float64(n) / float64(len(waits))
		}
	}
	return parts
}

// bySize groups the jobs by size in powers of two, sorted by size.
func (m *measured) bySize(at []Seconds) []Group {
	unit := uint64(one(m.resource))
	class := func(j *job) int { return sizeClass(uint64(j.amount), unit) }
	classes := map[string]int{}
	groups := m.groups(func(j *job) string {
		name := sizeName(class(j))
		classes[name] = class(j)
		return name
	}, at)
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(classes[a.Name], classes[b.Name]) })
	return groups
}

// sizeClass returns -1 for no request, 0 for less than one, and otherwise the number of binary digits of the size.
func sizeClass(amount, unit uint64) int {
	if amount == 0 {
		return -1
	}
	return bits.Len64(amount / unit)
}

func sizeName(class int) string {
	switch class {
	case -1:
		return "none"
	case 0:
		return "below 1"
	case 1:
		return "1"
	default:
		least := uint64(1) << (class - 1)
		return fmt.Sprintf("%d-%d", least, 2*least-1)
	}
}
