package scheduler

import (
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Uses returns the resources that units, pods and the quota refer to. It returns false if the backend
// does not report them. It takes time proportional to the number of units and pods.
//
// Charges are part of what the backend uses. Shapes, including parked ones and those of claimants, only lack what their
// units request or what the backend uses.
func (s *Scheduler) Uses() (resources.IDs, bool) {
	var used resources.IDs
	if s.backend != nil {
		forgetter, is := s.backend.(quota.Forgetter)
		if !is {
			return nil, false
		}
		forgetter.Uses(&used)
	}
	for _, u := range s.units {
		used.AddVector(u.Demand.Requests)
	}
	s.pods.Uses(&used)
	for space := range s.over.since { // until the next comparison, even if nothing is charged any more
		used.Add(space.Resource)
	}
	return used, true
}

// Forget forgets all resources that are not in the set, and groups that nothing uses. The set must contain what Uses
// returns now. Afterwards, the IDs of the forgotten resources can be assigned to other names.
func (s *Scheduler) Forget(used resources.IDs) {
	if forgetter, is := s.backend.(quota.Forgetter); is {
		forgetter.Forget(used, func(node quota.NodeID) bool { return s.queueAt[node] != nil })
		s.tournament.forget(used)
	}
	s.meters.forget(used)
	for _, q := range s.queues {
		q.learned.Forget(used)
	}
	if len(s.freed) == 0 {
		s.freed, s.isFreed = nil, map[quota.Space]bool{}
	}
}

// forget drops the upper bounds of resources that are no longer used.
func (t *tournament) forget(used resources.IDs) {
	t.root.forget(used)
	for _, b := range t.inner {
		b.forget(used)
	}
	for _, b := range t.queues {
		b.forget(used)
	}
}

func (b *branch) forget(used resources.IDs) {
	var kept map[resources.ID]int64 // a map never shrinks
	for id, most := range b.most {
		if used.Has(id) {
			if kept == nil {
				kept = map[resources.ID]int64{}
			}
			kept[id] = most
		}
	}
	b.most = kept
}
