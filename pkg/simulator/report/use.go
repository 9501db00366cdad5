package report

import (
	"maps"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/simulator"
)

// Use of a resource.
type Use struct {
	Resource string `json:"resource"`
	// Max of the root as it is written, without oversell.
	Max string `json:"max"`
	// Hours of the resource that were used, in cores, GiB or counts.
	Hours float64 `json:"resourceHours"`
	// Part of the root's max that was used: from the first submission to the last end,
	// and to the last submission, before what was left ran out.
	Part      float64 `json:"part"`
	PartEarly float64 `json:"partUntilLastSubmission"`
}

// use of each resource that the root names.
func (m *measured) use(root tree.Node) []Use {
	uses := []Use{}
	for _, name := range slices.Sorted(maps.Keys(root.Max)) {
		if name == quota.JobsResource {
			continue
		}
		limit, _ := resources.LimitValue(name, root.Max[name])
		var whole, early area
		for i := range m.jobs {
			j := &m.jobs[i]
			whole.add(j.of(name), int64(j.End-j.Start))
			early.add(j.of(name), int64(min(j.End, m.last)-j.Start))
		}
		uses = append(uses, Use{Resource: name, Max: resources.Format(name, limit), Hours: whole.hours() / one(name),
			Part: part(whole, limit, m.end-m.first), PartEarly: part(early, limit, m.last-m.first)})
	}
	return uses
}

// demand of the resource by all jobs, those never released included.
func (m *measured) demand() float64 {
	var all area
	for i := range m.jobs {
		all.add(m.jobs[i].amount, int64(m.jobs[i].Runs))
	}
	return all.hours() / one(m.resource)
}

// part of what there was in the time; of nothing it is nothing.
func part(used area, limit int64, in time.Duration) float64 {
	var all area
	all.add(limit, int64(in))
	if all.float() == 0 {
		return 0
	}
	return used.float() / all.float()
}

// one is what a user calls one of the resource, in base units.
func one(resource string) float64 {
	return float64(simulator.One(resource))
}

// Unit is what a user calls one of a resource, in words: "cpu", "GiB of memory".
func Unit(resource string) string {
	if simulator.One(resource) == 1<<30 {
		return "GiB of " + resource
	}
	return resource
}

// unitHours is the same for an hour of it: "cpu-hours", "GiB-hours of memory".
func unitHours(resource string) string {
	if simulator.One(resource) == 1<<30 {
		return "GiB-hours of " + resource
	}
	return resource + "-hours"
}

// Series reports how a run went in time, in intervals of equal length.
type Series struct {
	// Interval that each point stands for; the first begins with the first
	// submission.
	Interval Seconds `json:"intervalSeconds"`
	// Limit of the resource at the root, in cores, GiB or counts; 0 when it has none.
	Limit float64 `json:"limit"`
	// Use by tenant: the mean of the interval.
	Use map[string][]float64 `json:"use"`
	// Waiting is how many jobs waited in the mean of the interval, and Longest how
	// long one of them had waited at most. Jobs that were never released do not count.
	Waiting []float64 `json:"waiting"`
	Longest []Seconds `json:"longestWaitSeconds"`
}

// points of a series.
const points = 200

func (m *measured) series(root tree.Node) Series {
	// Rounded up to a second, so that no end is outside.
	interval := ((m.end-m.first)/points + time.Second).Truncate(time.Second)
	n := int((m.end-m.first)/interval) + 1
	s := Series{Interval: Seconds(interval), Use: map[string][]float64{}, Waiting: make([]float64, n), Longest: make([]Seconds, n)}
	unit := one(m.resource)
	if q, limited := root.Max[m.resource]; limited {
		limit, _ := resources.LimitValue(m.resource, q)
		s.Limit = float64(limit) / unit
	}
	for i := range m.jobs {
		j := &m.jobs[i]
		if s.Use[j.Namespace] == nil {
			s.Use[j.Namespace] = make([]float64, n)
		}
		if !j.Released {
			continue
		}
		use := s.Use[j.Namespace]
		m.cover(interval, j.Start, j.End, func(k int, part float64, _ time.Duration) {
			use[k] += part * float64(j.amount) / unit
		})
		m.cover(interval, j.Submitted, j.Start, func(k int, part float64, end time.Duration) {
			s.Waiting[k] += part
			s.Longest[k] = max(s.Longest[k], Seconds(end-j.Submitted))
		})
	}
	return s
}

// cover calls each with the intervals that a time touches: which part of the interval
// is in the time, and where that part ends.
func (m *measured) cover(interval, from, to time.Duration, each func(k int, part float64, end time.Duration)) {
	for k := int((from - m.first) / interval); from < to; k++ {
		end := min(to, m.first+time.Duration(k+1)*interval)
		each(k, float64(end-from)/float64(interval), end)
		from = end
	}
}
