package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"

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
	// Head is the key of the unit in front, HeadReason what it waits for.
	Head       string
	HeadReason quota.Reason
}

// ChangedQueues lists the queues whose figures may have changed since the last
// call, by name.
func (s *Scheduler) ChangedQueues(now time.Time) []QueueStats {
	var all []QueueStats
	for _, l := range s.lines {
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
	return slices.Sorted(maps.Keys(s.lines))
}

func (s *Scheduler) stats(l *line, now time.Time) QueueStats {
	stats := QueueStats{Name: l.name, Quota: l.Group.Path(), Policy: l.Policy,
		Pending: l.counts[Waiting], Reserved: l.counts[Reserved],
		Dequeued: l.counts[Dequeued], Running: l.counts[Running]}
	if front := l.Front(); front != nil {
		stats.Head = front.Key
		if r := s.refusal(s.units[front.Key], now); r != nil {
			stats.HeadReason = r.Reason
		}
	}
	if l.set.Stop != NotStopped && stats.Pending > 0 {
		stats.HeadReason = ReasonQueueStopped
	}
	return stats
}

// Pending sums what units in line demand, by node; a resource's sum stops at the
// largest number there is.
func (s *Scheduler) Pending() map[quota.NodeID]resources.Vector {
	sums := map[quota.NodeID]map[resources.ID]int64{}
	for _, l := range s.lines {
		l.Shapes(func(shape *queue.Shape) {
			for _, node := range l.Group.Nodes() {
				if sums[node] == nil {
					sums[node] = map[resources.ID]int64{}
				}
				for _, a := range shape.Demand.Requests {
					sums[node][a.ID] = saturatingAdd(sums[node][a.ID], a.Value, shape.Len())
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

func saturatingAdd(sum, value int64, times int) int64 {
	const most = int64(^uint64(0) >> 1)
	if value > 0 && int64(times) > (most-sum)/value {
		return most
	}
	return sum + value*int64(times)
}

// Check proves the invariants of the package comment. It takes time proportional
// to the number of units; tests and debug builds call it after every event.
func (s *Scheduler) Check() error {
	charged := map[quota.NodeID]map[resources.ID]int64{}
	jobs := map[quota.NodeID]int64{}
	for _, u := range s.inOrder() {
		if err := s.checkUnit(u); err != nil {
			return fmt.Errorf("unit %s: %w", u.key(), err)
		}
		if u.charged == nil {
			continue
		}
		for _, node := range u.charged.group.Nodes() {
			jobs[node]++
			if charged[node] == nil {
				charged[node] = map[resources.ID]int64{}
			}
			for _, a := range u.charged.demand.Requests {
				charged[node][a.ID] = saturatingAdd(charged[node][a.ID], a.Value, 1)
			}
		}
	}
	return s.checkUsage(charged, jobs)
}

func (s *Scheduler) checkUnit(u *unit) error {
	charged := u.assumed || u.Phase.holdsQuota()
	waiting := u.Phase == Waiting && !u.assumed
	switch {
	case charged && s.backend != nil && u.chargedTo() != s.holder(u, u.line):
		return fmt.Errorf("holds quota and is not charged where it belongs")
	case !charged && u.charged != nil:
		return fmt.Errorf("is charged to %s and holds no quota", u.charged.group.Path())
	case !waiting && u.item.Shape() != nil:
		return fmt.Errorf("is in line and does not wait")
	case waiting && u.item.Shape() == nil && u.Held == nil && u.homeless == nil && u.RequeueAt == 0 && u.line.set.Stop == NotStopped:
		return fmt.Errorf("waits, is not in line, and nothing says why")
	case u.assumed && u.wanted != Dequeue && u.sentKind != Dequeue:
		return fmt.Errorf("is assumed released, and nobody is to write it")
	case u.Phase.holdsQuota() && u.Stopped && u.wanted != Requeue && u.sentKind != Requeue:
		return fmt.Errorf("has stopped, and nobody is to requeue it")
	case u.Phase.holdsQuota() && !u.Stopped && u.Inactive && !u.Evicted && !u.Over && u.wanted != Evict && u.sentKind != Evict:
		return fmt.Errorf("is to be inactive, and nobody is to evict it")
	case u.endsAt() != 0 && u.lookAt == 0 && u.wanted != Evict && u.sentKind != Evict:
		return fmt.Errorf("may run for %v only, and nobody looks when that is over", u.MaxTime)
	}
	return nil
}

func (s *Scheduler) checkUsage(charged map[quota.NodeID]map[resources.ID]int64, jobs map[quota.NodeID]int64) error {
	if s.backend == nil {
		return nil
	}
	for i, usage := range s.backend.Usage() {
		node := quota.NodeID(i)
		if usage.Jobs != jobs[node] {
			return fmt.Errorf("node %s: %d jobs counted, %d units charged", usage.Path, usage.Jobs, jobs[node])
		}
		for _, used := range usage.Used {
			if demanded := charged[node][used.ID]; demanded != used.Value {
				return fmt.Errorf("node %s: resource %d: used is %d, charged units demand %d", usage.Path, used.ID, used.Value, demanded)
			}
			delete(charged[node], used.ID)
		}
		// What is left is JobsResource, counted as Jobs.
		for id, demanded := range charged[node] {
			if demanded != 0 && demanded != usage.Jobs {
				return fmt.Errorf("node %s: resource %d: used is 0, charged units demand %d", usage.Path, id, demanded)
			}
		}
	}
	return nil
}
