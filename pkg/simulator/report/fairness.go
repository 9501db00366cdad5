package report

import (
	"maps"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Fairness between tenants.
type Fairness struct {
	// Jain's index over the mean bounded slowdowns of the tenants: 1 when all are
	// equal, 1/n when one of n has it all.
	Jain float64 `json:"jainIndex"`
	// WorstTenant waited longest in the mean.
	WorstTenant string  `json:"worstTenant"`
	WorstMean   Seconds `json:"worstTenantWaitMeanSeconds"`
	// Shortfall by resource, in the order of names, over all groups with a min.
	Shortfall []Shortfall `json:"shortfall"`
}

// Shortfall is what groups with a min used less than that while they had jobs waiting
// that fit in it.
type Shortfall struct {
	Resource string  `json:"resource"`
	Hours    float64 `json:"resourceHours"`
	// Worst is the group that lacked the most of it, by its path.
	Worst      string  `json:"worstQuota"`
	WorstHours float64 `json:"worstQuotaResourceHours"`
}

func (m *measured) fairness(root tree.Node, tenants []Group) Fairness {
	f := Fairness{Shortfall: m.shortfall(root)}
	var sum, squares float64
	n := 0
	for _, t := range tenants {
		if t.Jobs == t.Never {
			continue
		}
		n++
		sum += t.Slowdown
		squares += t.Slowdown * t.Slowdown
		if f.WorstTenant == "" || t.Mean > f.WorstMean {
			f.WorstTenant, f.WorstMean = t.Name, t.Mean
		}
	}
	if n > 0 {
		f.Jain = sum * sum / (float64(n) * squares)
	}
	return f
}

// guarantee is what a group is guaranteed.
type guarantee []request

// guarantees by the paths of nodes.
func guarantees(node tree.Node, above string, into map[string]guarantee) {
	path := above + node.Name
	for _, name := range slices.Sorted(maps.Keys(node.Min)) {
		value, err := resources.LimitValue(name, node.Min[name])
		if err == nil && value > 0 && name != quota.JobsResource {
			into[path] = append(into[path], request{resource: name, value: value})
		}
	}
	for _, child := range node.Children {
		guarantees(child, path+"/", into)
	}
}

func (m *measured) shortfall(root tree.Node) []Shortfall {
	mins := map[string]guarantee{}
	guarantees(root, "", mins)
	byGroup := map[string][]*job{}
	for i := range m.jobs {
		// A job that was never released lacks more than what its group is guaranteed.
		if j := &m.jobs[i]; j.Released && mins[j.Quota] != nil {
			byGroup[j.Quota] = append(byGroup[j.Quota], j)
		}
	}
	sums := map[string]*Shortfall{}
	for _, path := range slices.Sorted(maps.Keys(mins)) {
		areas := newClaim(mins[path]).play(byGroup[path])
		for i, r := range mins[path] {
			hours := areas[i].hours() / one(r.resource)
			s := sums[r.resource]
			if s == nil {
				s = &Shortfall{Resource: r.resource}
				sums[r.resource] = s
			}
			s.Hours += hours
			if hours > s.WorstHours {
				s.Worst, s.WorstHours = path, hours
			}
		}
	}
	list := []Shortfall{}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, *sums[name])
	}
	return list
}

// claim follows in time what a group uses of its guarantee and what its waiting jobs
// ask for.
type claim struct {
	min guarantee
	// used of each resource of the guarantee.
	used []int64
	// shapes of waiting jobs: jobs that ask for the same are counted together.
	shapes []shape
	byKey  map[string]int
	areas  []area
}

type shape struct {
	asks    []int64
	waiting int64
}

func newClaim(g guarantee) *claim {
	return &claim{min: g, used: make([]int64, len(g)), byKey: map[string]int{}, areas: make([]area, len(g))}
}

// moment at which a job of the group is submitted, released or ends.
type moment struct {
	at    time.Duration
	shape int
	// By how much the number of waiting and of running jobs changes.
	waiting, running int64
}

// play all jobs of the group, and tell for each resource what fell short, times how
// long.
func (c *claim) play(jobs []*job) []area {
	moments := make([]moment, 0, 3*len(jobs))
	for _, j := range jobs {
		s := c.shapeOf(j)
		moments = append(moments, moment{at: j.Submitted, shape: s, waiting: 1},
			moment{at: j.Start, shape: s, waiting: -1, running: 1}, moment{at: j.End, shape: s, running: -1})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return int(a.at - b.at) })
	for i, now := range moments {
		c.shapes[now.shape].waiting += now.waiting
		for r, asked := range c.shapes[now.shape].asks {
			c.used[r] += now.running * asked
		}
		if i+1 < len(moments) && moments[i+1].at > now.at {
			c.add(moments[i+1].at - now.at)
		}
	}
	return c.areas
}

func (c *claim) shapeOf(j *job) int {
	asks := make([]int64, len(c.min))
	var key strings.Builder
	for i, r := range c.min {
		asks[i] = j.of(r.resource)
		key.WriteString(resources.Format("", asks[i]))
		key.WriteByte(' ')
	}
	s, known := c.byKey[key.String()]
	if !known {
		s = len(c.shapes)
		c.shapes, c.byKey[key.String()] = append(c.shapes, shape{asks: asks}), s
	}
	return s
}

// add what falls short for that long.
func (c *claim) add(long time.Duration) {
	asked := make([]int64, len(c.min))
	for _, s := range c.shapes {
		if s.waiting == 0 || !c.fits(s) {
			continue
		}
		for r := range asked {
			asked[r] += s.waiting * s.asks[r]
		}
	}
	for r := range asked {
		c.areas[r].add(min(asked[r], c.min[r].value-c.used[r]), int64(long))
	}
}

func (c *claim) fits(s shape) bool {
	for r := range c.min {
		if s.asks[r] > 0 && c.used[r]+s.asks[r] > c.min[r].value {
			return false
		}
	}
	return true
}
