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

// Use is the use of a resource.
type Use struct {
	Resource string `json:"resource"`
	// Max is the max of the root, without the oversell rate.
	Max string `json:"max"`
	// Hours is the number of used resource-hours, in cores, GiB or counts.
	Hours float64 `json:"resourceHours"`
	// Part is the used part of the max of the root from the first submission to the last end. PartEarly is the same
	// up to the last submission, before the remaining jobs drain.
	Part      float64 `json:"part"`
	PartEarly float64 `json:"partUntilLastSubmission"`
}

// use returns the use of each resource that the root limits and a job requests.
func (m *measured) use(root tree.Node) []Use {
	uses := []Use{}
	for _, name := range slices.Sorted(maps.Keys(root.Max)) {
		if name == quota.JobsResource || !slices.ContainsFunc(m.jobs, func(j job) bool { return (&j).of(name) > 0 }) {
			continue
		}
		limit, _ := resources.LimitValue(name, root.Max[name])
		var whole, early area
		for i := range m.jobs {
			j := &m.jobs[i]
			amount := j.of(name)
			j.eachRun(func(from, to time.Duration) {
				whole.add(amount, int64(to-from))
				early.add(amount, int64(min(to, m.last)-from))
			})
		}
		uses = append(uses, Use{Resource: name, Max: resources.Format(name, limit), Hours: whole.hours() / one(name),
			Part: part(whole, limit, m.end-m.first), PartEarly: part(early, limit, m.last-m.first)})
	}
	return uses
}

// demand returns the demand of all jobs for the resource, including those never released.
func (m *measured) demand() float64 {
	var all area
	for i := range m.jobs {
		all.add(m.jobs[i].amount, int64(m.jobs[i].Runs))
	}
	return all.hours() / one(m.resource)
}

// part returns the part of the limit that is used during the time; it is 0 if the limit or the time is 0.
func part(used area, limit int64, in time.Duration) float64 {
	var all area
	all.add(limit, int64(in))
	if all.float() == 0 {
		return 0
	}
	return used.float() / all.float()
}

// one returns the size, in base units, of the unit that users count the resource in.
func one(resource string) float64 {
	return float64(simulator.One(resource))
}

// Unit returns the name of the unit that users count a resource in: "cpu", "GiB of memory".
func Unit(resource string) string {
	if simulator.One(resource) == 1<<30 {
		return "GiB of " + resource
	}
	return resource
}

// unitHours returns the name of the unit of resource-hours: "cpu-hours", "GiB-hours of memory".
func unitHours(resource string) string {
	if simulator.One(resource) == 1<<30 {
		return "GiB-hours of " + resource
	}
	return resource + "-hours"
}

// Series describes a run over time, in intervals of equal length.
type Series struct {
	// Interval is the length of an interval. The first one begins with the first
	// submission.
	Interval Seconds `json:"intervalSeconds"`
	// Limit is the max of the root for the resource, in cores, GiB or counts; 0 for none.
	Limit float64 `json:"limit"`
	// Use is the mean use per tenant in each interval.
	Use map[string][]float64 `json:"use"`
	// Waiting is the mean number of waiting jobs in each interval, Longest the longest wait
	// until then. Jobs that were never released do not count.
	Waiting []float64 `json:"waiting"`
	Longest []Seconds `json:"longestWaitSeconds"`
}

const points = 200

func (m *measured) series(root tree.Node) Series {
	// Round up to a second, so that the last interval contains the last end.
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
		j.eachRun(func(from, to time.Duration) {
			m.cover(interval, from, to, func(k int, part float64, _ time.Duration) {
				use[k] += part * float64(j.amount) / unit
			})
		})
		j.eachWait(func(from, to time.Duration) {
			m.cover(interval, from, to, func(k int, part float64, end time.Duration) {
				s.Waiting[k] += part
				s.Longest[k] = max(s.Longest[k], Seconds(end-from))
			})
		})
	}
	return s
}

// cover calls each for every interval that overlaps the given time, with the overlapping fraction of the interval and
// the end of the overlap.
func (m *measured) cover(interval, from, to time.Duration, each func(k int, part float64, end time.Duration)) {
	for k := int((from - m.first) / interval); from < to; k++ {
		end := min(to, m.first+time.Duration(k+1)*interval)
		each(k, float64(end-from)/float64(interval), end)
		from = end
	}
}
