package scheduler

import (
	"maps"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// QueueStats counts the units of one queue.
type QueueStats struct {
	// Name of the Queue, and path of its group.
	Name, Quota string
	Policy      queue.Policy
	// Pending, Reserved, Dequeued and Running units.
	Pending, Reserved, Dequeued, Running int
	// Stopped by an administrator.
	Stopped bool
	// Head is the key of the unit in front, HeadReason what it waits for.
	Head       string
	HeadReason wellknown.Reason
}

// ChangedQueues lists the queues whose figures may have changed since the last
// call, by name.
func (s *Scheduler) ChangedQueues(now time.Time) []QueueStats {
	var all []QueueStats
	for _, l := range s.queues {
		if l.changed {
			l.changed = false
			all = append(all, s.stats(l, now))
		}
	}
	slices.SortFunc(all, func(a, b QueueStats) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// QueueNames lists all queues by name.
func (s *Scheduler) QueueNames() []string {
	return slices.Sorted(maps.Keys(s.queues))
}

func (s *Scheduler) stats(l *queueState, now time.Time) QueueStats {
	stats := QueueStats{Name: l.name, Quota: l.Group.Path(), Policy: l.Policy, Stopped: l.set.Stop != NotStopped,
		Pending: l.counts[Waiting], Reserved: l.counts[Reserved],
		Dequeued: l.counts[Dequeued], Running: l.counts[Running]}
	if front := l.Front(); front != nil {
		stats.Head = front.Key
		if r := s.units[front.Key].refusal(now); r != nil {
			stats.HeadReason = r.Reason
		}
	}
	if stats.Stopped && stats.Pending > 0 {
		stats.HeadReason = wellknown.ReasonQueueStopped
	}
	return stats
}

// Pending sums what units in line demand, by node; a resource's sum stops at the
// largest number there is.
func (s *Scheduler) Pending() map[quota.NodeID]resources.Vector {
	sums := map[quota.NodeID]map[resources.ID]int64{}
	for _, l := range s.queues {
		l.Shapes(func(shape *queue.Shape) {
			for _, node := range l.Group.Nodes() {
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
		var v resources.Vector
		for id, value := range sum {
			v = v.With(id, value)
		}
		vectors[node] = v
	}
	return vectors
}

// Usage of the quota, by what users know of it; nil while there is none.
func (s *Scheduler) Usage() []quota.NodeUsage {
	if totaler, totals := s.backend.(quota.UsageAggregator); totals {
		return totaler.AggregatedUsage()
	}
	if s.backend == nil {
		return nil
	}
	return s.backend.Usage()
}
