package scheduler

import (
	"maps"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// QueueStats are the counts of the units of one queue.
type QueueStats struct {
	// Name is the name of the Queue, and Quota the path of its group.
	Name, Quota string
	Policy      *queue.Policy
	// Pending, Reserved, Dequeued and Running are numbers of units.
	Pending, Reserved, Dequeued, Running int
	// Stopped is whether an administrator has stopped the queue.
	Stopped bool
	// Waits is whether a unit is in front, and HeadReason is why it waits. The stats do not name the unit, because
	// readers of a Queue might not be allowed to read units of its namespace.
	Waits      bool
	HeadReason wellknown.Reason
	// Submissions are when the queued units were submitted; nil if there are none. Units that users hold are not queued.
	Submissions *queue.Submissions
	// HighestPriority is the highest priority of the front unit and of the units that hold quota, as limited by the queue;
	// nil if there are none.
	HighestPriority *int32
}

// ChangedQueues returns the queues whose counts may have changed since the last call, ordered by name.
func (s *Scheduler) ChangedQueues(now time.Time) []QueueStats {
	var all []QueueStats
	for _, q := range s.queues {
		if q.changed {
			q.changed = false
			all = append(all, s.stats(q, now))
		}
	}
	slices.SortFunc(all, func(a, b QueueStats) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// QueueNames returns the names of all queues in order.
func (s *Scheduler) QueueNames() []string {
	return slices.Sorted(maps.Keys(s.queues))
}

func (s *Scheduler) stats(q *queueState, now time.Time) QueueStats {
	stats := QueueStats{Name: q.name, Quota: q.Group.Path(), Policy: q.Policy, Stopped: q.set.Stop != NotStopped,
		Pending: q.counts[Waiting], Reserved: q.counts[Reserved],
		Dequeued: q.counts[Dequeued], Running: q.counts[Running], HighestPriority: q.highestPriority()}
	if front := q.Front(); front != nil {
		stats.Waits = true
		if r := s.units[front.Key].refusal(now); r != nil {
			stats.HeadReason = r.Reason
		}
	}
	if submitted, queued := q.Submissions(); queued {
		stats.Submissions = &submitted
	}
	if why := q.closed(); why != nil && stats.Pending > 0 {
		stats.HeadReason = why.Reason
	}
	return stats
}

// highestPriority returns the highest priority of the units that can be tried or hold quota; nil if there are none.
// Waiting units are ordered by priority, so only the first one counts.
func (q *queueState) highestPriority() *int32 {
	var highest *int32
	see := func(priority int32) {
		if highest == nil || priority > *highest {
			highest = &priority
		}
	}
	if front := q.Front(); front != nil {
		see(front.Priority)
	}
	for _, h := range q.holders() {
		see(q.priorityOf(h))
	}
	return highest
}

// Pending returns the sum of the demands of the queued units by node. Each sum is capped at the largest int64.
func (s *Scheduler) Pending() map[quota.NodeID]resources.Vector {
	sums := map[quota.NodeID]map[resources.ID]int64{}
	for _, q := range s.queues {
		q.Shapes(func(shape *queue.Shape) {
			for _, node := range q.Group.Nodes() {
				if sums[node] == nil {
					sums[node] = map[resources.ID]int64{}
				}
				for _, a := range shape.Demand.Requests {
					sums[node][a.ID] = resources.AddTimes(sums[node][a.ID], a.Value, shape.Len())
				}
			}
		})
	}
	vectors := map[quota.NodeID]resources.Vector{}
	for node, sum := range sums {
		v := make(resources.Vector, 0, len(sum))
		for _, id := range slices.Sorted(maps.Keys(sum)) {
			v = append(v, resources.Amount{ID: id, Value: sum[id]})
		}
		vectors[node] = v
	}
	return vectors
}

// ByPath converts amounts by node, as Pending returns them, to the paths of the nodes and the resource names that users
// know.
func (s *Scheduler) ByPath(amounts map[quota.NodeID]resources.Vector) map[string]resources.Vector {
	byPath := make(map[string]resources.Vector, len(amounts))
	for _, q := range s.queues {
		path := q.Group.Path()
		for _, node := range q.Group.Nodes() {
			if _, done := byPath[path]; done {
				break // and so are the nodes above
			}
			if v := amounts[node]; v != nil {
				byPath[path] = s.known(v)
			}
			path = path[:max(strings.LastIndexByte(path, '/'), 0)]
		}
	}
	return byPath
}

// Usage returns the usage of the quota by resource names; nil if there is no quota.
func (s *Scheduler) Usage() []quota.NodeUsage {
	if aggregator, is := s.backend.(quota.UsageAggregator); is {
		return aggregator.AggregatedUsage()
	}
	if s.backend == nil {
		return nil
	}
	return s.backend.Usage()
}
