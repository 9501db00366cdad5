package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Fairness describes the fairness between tenants.
type Fairness struct {
	// Jain is Jain's index over the mean bounded slowdowns of the tenants: 1 if all are
	// equal, 1/n if one of n tenants has all of the slowdown; nil if no job was released.
	Jain *float64 `json:"jainIndex,omitempty"`
	// WorstTenant is the tenant with the longest mean wait.
	WorstTenant string  `json:"worstTenant"`
	WorstMean   Seconds `json:"worstTenantWaitMeanSeconds"`
	// Shortfall is the shortfall by resource, sorted by name, over all nodes with a min.
	// A job counts in each of them that is above it.
	Shortfall []Shortfall `json:"shortfall"`
}

// Shortfall is the difference between the min and the use of nodes while they had waiting
// jobs that fit in the min and in each max below it.
type Shortfall struct {
	Resource string  `json:"resource"`
	Hours    float64 `json:"resourceHours"`
	// Worst is the path of the node with the largest shortfall.
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
		f.Jain = new(sum * sum / (float64(n) * squares))
	}
	return f
}

// guarantee is the guaranteed quota of a node.
type guarantee []request

// guarantees collects the guarantees and the nodes by path.
func guarantees(node tree.Node, above string, into map[string]guarantee, nodes map[string]tree.Node) {
	path := above + node.Name
	nodes[path] = node
	for _, name := range slices.Sorted(maps.Keys(node.Min)) {
		value, err := resources.LimitValue(name, node.Min[name])
		if err == nil && value > 0 && name != quota.JobsResource {
			into[path] = append(into[path], request{resource: name, value: value})
		}
	}
	for _, child := range node.Children {
		guarantees(child, path+"/", into, nodes)
	}
}

// parent returns the path of the node above; empty for the root.
func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

func (m *measured) shortfall(root tree.Node) []Shortfall {
	mins, nodes := map[string]guarantee{}, map[string]tree.Node{}
	guarantees(root, "", mins, nodes)
	byNode := map[string][]*job{}
	for i := range m.jobs {
		// A job that was never released does not wait for its guarantee.
		if j := &m.jobs[i]; j.Released {
			for path := j.Quota; path != ""; path = parent(path) {
				if mins[path] != nil {
					byNode[path] = append(byNode[path], j)
				}
			}
		}
	}
	sums := map[string]*Shortfall{}
	for _, path := range slices.Sorted(maps.Keys(mins)) {
		areas := newClaim(path, mins[path], nodes).replay(byNode[path])
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

// claim tracks over time how much of its guarantee a node uses and how much its waiting
// jobs request.
type claim struct {
	path  string
	min   guarantee
	nodes map[string]tree.Node
	// rooms are the rooms of the node and of the nodes below it, by path.
	rooms map[string]*room
	// shapes are the request shapes of waiting jobs: jobs with equal requests are counted
	// together.
	shapes []shape
	byKey  map[string]int
	areas  []area
}

// room is the use and the limit of each resource of the guarantee in a node.
type room struct{ used, limit []int64 }

type shape struct {
	// rooms are the rooms that the jobs need, up to the room of the guarantee.
	rooms    []*room
	requests []int64
	waiting  int64
}

func newClaim(path string, g guarantee, nodes map[string]tree.Node) *claim {
	return &claim{path: path, min: g, nodes: nodes, rooms: map[string]*room{}, byKey: map[string]int{}, areas: make([]area, len(g))}
}

// room returns the room of the node of the guarantee, or of one below it.
func (c *claim) room(path string) *room {
	if c.rooms[path] == nil {
		c.rooms[path] = &room{used: make([]int64, len(c.min)), limit: make([]int64, len(c.min))}
		for i, r := range c.min {
			limit := &c.rooms[path].limit[i]
			*limit = r.value
			if path != c.path {
				*limit = math.MaxInt64
				if amount, limited := c.nodes[path].Max[r.resource]; limited {
					*limit, _ = resources.LimitValue(r.resource, amount)
				}
			}
		}
	}
	return c.rooms[path]
}

// event says that a job of the node begins to wait, is released, or ends.
type event struct {
	at    time.Duration
	shape int
	// The change of the number of waiting and of running jobs.
	waiting, running int64
}

// replay processes all jobs of the node and returns for each resource the shortfall
// multiplied by its duration.
func (c *claim) replay(jobs []*job) []area {
	events := make([]event, 0, 4*len(jobs))
	for _, j := range jobs {
		s := c.shapeOf(j)
		j.eachWait(func(from, to time.Duration) {
			events = append(events, event{at: from, shape: s, waiting: 1}, event{at: to, shape: s, waiting: -1})
		})
		j.eachRun(func(from, to time.Duration) {
			events = append(events, event{at: from, shape: s, running: 1}, event{at: to, shape: s, running: -1})
		})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for i, now := range events {
		c.shapes[now.shape].waiting += now.waiting
		for r, requested := range c.shapes[now.shape].requests {
			for _, room := range c.shapes[now.shape].rooms {
				room.used[r] += now.running * requested
			}
		}
		if i+1 < len(events) && events[i+1].at > now.at {
			c.add(events[i+1].at - now.at)
		}
	}
	return c.areas
}

func (c *claim) shapeOf(j *job) int {
	requests := make([]int64, len(c.min))
	var key strings.Builder
	key.WriteString(j.Quota + " ")
	for i, r := range c.min {
		requests[i] = j.of(r.resource)
		key.WriteString(resources.Format("", requests[i]))
		key.WriteByte(' ')
	}
	s, known := c.byKey[key.String()]
	if !known {
		s = len(c.shapes)
		rooms := []*room{c.room(c.path)}
		for path := j.Quota; path != c.path; path = parent(path) {
			rooms = append(rooms, c.room(path))
		}
		c.shapes, c.byKey[key.String()] = append(c.shapes, shape{requests: requests, rooms: rooms}), s
	}
	return s
}

// add adds the current shortfall for the given duration.
func (c *claim) add(duration time.Duration) {
	requested := make([]int64, len(c.min))
	for _, s := range c.shapes {
		if s.waiting == 0 || !c.fits(s) {
			continue
		}
		for r := range requested {
			requested[r] += s.waiting * s.requests[r]
		}
	}
	for r := range requested {
		c.areas[r].add(min(requested[r], c.min[r].value-c.room(c.path).used[r]), int64(duration))
	}
}

func (c *claim) fits(s shape) bool {
	for r, requested := range s.requests {
		if requested > 0 && slices.ContainsFunc(s.rooms, func(room *room) bool { return requested > room.limit[r]-room.used[r] }) {
			return false
		}
	}
	return true
}
