package scheduler

import (
	"fmt"
	"maps"
	"slices"

	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Check verifies the invariants of the package comment and returns the first violation. It takes time
// proportional to the number of units. Tests and debug builds call it after every event.
func (s *Scheduler) Check() error {
	if broken := s.Audit(func(id resources.ID) string { return fmt.Sprint("resource ", id) }); len(broken) > 0 {
		return broken[0]
	}
	return nil
}

// Audit is like Check but returns all violations: first the sums of pods, then units by name, then nodes. It is cheap
// enough to call from time to time in production, between two events. name returns the name of a resource.
func (s *Scheduler) Audit(name func(resources.ID) string) []error {
	charged := map[quota.NodeID]map[resources.ID]int64{}
	jobs := map[quota.NodeID]int64{}
	wrong := map[string]error{}
	metered := newMeters()
	add := func(c *charge, namespace string, growth bool) {
		if c == nil {
			return
		}
		total := c.Total()
		metered.change(c.group.Path(), namespace, nil, total)
		for _, node := range c.group.Nodes() {
			if len(c.Demand.Requests) > 0 && !growth {
				jobs[node]++
			}
			if charged[node] == nil {
				charged[node] = map[resources.ID]int64{}
			}
			for _, a := range total {
				charged[node][a.ID] = resources.AddTimes(charged[node][a.ID], a.Value, 1)
			}
		}
	}
	for _, u := range s.units {
		if err := s.checkUnit(u); err != nil {
			wrong[u.key()] = fmt.Errorf("unit %s: %w", u.key(), err)
		}
		add(u.charged, u.namespace(), u.Growth)
	}
	for _, h := range s.holders {
		add(h.left, h.Namespace, false)
	}
	for namespace, c := range s.strays {
		add(c, namespace, false)
	}
	broken := s.pods.Audit()
	for _, key := range slices.Sorted(maps.Keys(wrong)) {
		broken = append(broken, wrong[key])
	}
	if s.tournament != nil {
		broken = append(broken, s.tournament.check()...)
	}
	broken = append(broken, s.meters.differ(&metered, name)...)
	return append(broken, s.checkUsage(charged, jobs, name)...)
}

// Pods returns what is known about pods and their owners, to compare it with the cluster.
func (s *Scheduler) Pods() pods.View { return s.pods }

// VersionOf returns the UID and version of a unit; empty and 0 if it is not known.
func (s *Scheduler) VersionOf(key string) (uid string, version uint64) {
	if u := s.units[key]; u != nil {
		return u.UID, u.Version
	}
	return "", 0
}

// Units returns the number of units.
func (s *Scheduler) Units() int { return len(s.units) }

// EachUnit calls visit with the key and UID of each unit, in no particular order.
func (s *Scheduler) EachUnit(visit func(key, uid string)) {
	for key, u := range s.units {
		visit(key, u.UID)
	}
}

func (s *Scheduler) checkUnit(u *unit) error {
	waiting := u.Phase == Waiting && !u.assumed
	switch {
	case u.holdsQuota() && s.backend != nil && u.chargedGroup() != s.chargedTo(u):
		return fmt.Errorf("holds quota but is not charged to its group")
	case u.charged != nil && !u.holdsQuota() && (len(u.charged.Demand.Requests) > 0 || len(u.charged.Pods) == 0):
		return fmt.Errorf("is charged to %s but holds no quota", u.charged.group.Path())
	case u.charged != nil && u.holdsQuota() && !u.charged.Demand.Equal(u.Demand):
		return fmt.Errorf("is not charged what it was admitted with")
	case u.charged != nil && u.holder != nil && u.holder.units[0] == u && !u.charged.Pods.Equal(u.holder.beyondGrowth(s.pods.Requested(u.holder.Holder))):
		return fmt.Errorf("is not charged what its pods request")
	case !waiting && u.item.Shape() != nil:
		return fmt.Errorf("is queued but does not wait")
	case waiting && u.item.Shape() == nil && u.Held == nil && u.placeRefusal == nil && (u.requeueAt == 0 || u.timer.at == 0) && u.queue.admits():
		return fmt.Errorf("waits but is neither queued nor refused")
	case u.assumed && !u.write.pending(Dequeue) && !u.write.pending(Reserve):
		return fmt.Errorf("is assumed released but no write is pending")
	case u.write.pending(Expire): // it is not expected to do anything else
	case s.mayRequeue(u) && !u.write.pending(Requeue):
		return fmt.Errorf("has stopped but no requeue is pending")
	case u.Phase == Reserved && s.backend != nil && u.keptOut() != nil && !u.Evicted && !u.Stopped && !u.Over && !u.unadmitted && !u.write.pending(Requeue):
		return fmt.Errorf("is reserved and kept out of its queue but gives nothing back")
	case u.Phase == Reserved && u.queue != nil && u.timer.at == 0 && s.timers.checks[u] != 0:
		return fmt.Errorf("waits for a check with a timeout but has no timer")
	case u.Phase.holdsQuota() && u.Phase != Reserved && !u.Stopped && u.Inactive && !u.Evicted && !u.Over && !u.write.pending(Evict):
		return fmt.Errorf("holds quota while inactive but no eviction is pending")
	case u.endsAt() != 0 && u.timer.at == 0 && !u.write.pending(Evict):
		return fmt.Errorf("has a maximum execution time of %d s but no timer", u.MaxSeconds)
	case u.Renewal != nil && u.dequeuedAt != 0 && (u.Phase == Dequeued || u.Phase == Running) && u.timer.at == 0:
		return fmt.Errorf("must be renewed but has no timer")
	}
	return u.checkSize()
}

// checkUsage compares the usage of each node with the demands of the units that are charged to it.
func (s *Scheduler) checkUsage(charged map[quota.NodeID]map[resources.ID]int64, jobs map[quota.NodeID]int64, name func(resources.ID) string) (broken []error) {
	if s.backend == nil {
		return nil
	}
	for i, usage := range s.backend.Usage() {
		node := quota.NodeID(i)
		if usage.Jobs != jobs[node] {
			broken = append(broken, fmt.Errorf("node %s: %d jobs counted, %d units charged", usage.Path, usage.Jobs, jobs[node]))
		}
		for _, used := range usage.Used {
			if demanded := charged[node][used.ID]; demanded != used.Value {
				broken = append(broken, fmt.Errorf("node %s: %s: used is %d, charged units demand %d", usage.Path, name(used.ID), used.Value, demanded))
			}
			delete(charged[node], used.ID)
		}
		// What is left is JobsResource, compared above.
		for _, id := range slices.Sorted(maps.Keys(charged[node])) {
			if demanded := charged[node][id]; demanded != 0 && demanded != jobs[node] {
				broken = append(broken, fmt.Errorf("node %s: %s: used is 0, charged units demand %d", usage.Path, name(id), demanded))
			}
		}
	}
	return broken
}

// checkSize verifies that an elastic unit requests what its number of pods requests.
func (u *unit) checkSize() error {
	e := u.Elastic
	switch {
	case e == nil:
		return nil
	case !u.holdsQuota() && (e.Granted != 0 || e.sized != e.Min), u.holdsQuota() && e.sized != e.pods():
		return fmt.Errorf("was granted %d pods of %d to %d, and requests those of %d", e.Granted, e.Min, e.Count, e.sized)
	case u.assumed && u.write.wanted.admits() && (e.sized < e.Min || e.sized > e.Count): // a write of an older version fails
		return fmt.Errorf("is admitted with %d pods, not %d to %d", e.sized, e.Min, e.Count)
	case !u.Demand.Requests.Equal(e.requests(e.sized)):
		return fmt.Errorf("does not request what %d pods do", e.sized)
	}
	return nil
}
