package scheduler

import (
	"slices"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// A shape that waits for what its group is owed because others have borrowed it claims the spaces in
// which it lacks room: nobody may borrow more there. It claims every space in which it has lacked room
// since it began to wait, because it lacks room in another space each time a borrower ends. Its claims
// last until its group is no longer owed the demand or it has no items left. In a queue of which only
// the front is tried, they also end when another shape is in front.

// claim adds the spaces to the claims of the shape.
func (s *Scheduler) claim(l *queueState, shape *queue.Shape, spaces []quota.Space) (changed bool) {
	for _, space := range spaces {
		if slices.Contains(l.claims[shape], space) {
			continue
		}
		if len(l.claims[shape]) == 0 {
			if len(l.claimants) == 0 {
				s.claiming = append(s.claiming, l)
			}
			l.claimants = append(l.claimants, shape)
		}
		l.claims[shape] = append(l.claims[shape], space)
		s.lender.Pause(space.Node, space.Resource)
		s.tournament.under(space.Node, s.unprove)
		changed = true
	}
	return changed
}

// unclaim removes all claims of the shape.
func (s *Scheduler) unclaim(l *queueState, shape *queue.Shape) {
	claims := l.claims[shape]
	if len(claims) == 0 {
		return
	}
	delete(l.claims, shape)
	l.claimants = slices.DeleteFunc(l.claimants, func(c *queue.Shape) bool { return c == shape })
	if len(l.claimants) == 0 {
		s.claiming = slices.DeleteFunc(s.claiming, func(c *queueState) bool { return c == l })
	}
	for _, space := range claims {
		if s.lender.Resume(space.Node, space.Resource) {
			s.wake(quota.Space{Node: space.Node, Resource: space.Resource, Bound: quota.Lending})
		}
	}
}

// claimForFront adds claims for the shape in front of a queue if it is refused what it is owed. It
// reports whether that changed anything. The refusal is computed again, because the shape may lack
// more now than when it was last tried, before others were in front.
func (s *Scheduler) claimForFront(l *queueState) bool {
	front := l.Front()
	if s.lender == nil || front == nil {
		return false
	}
	shape := front.Shape()
	if !shape.Parked() {
		return false
	}
	r := l.Group.Fits(shape.Demand)
	return r != nil && s.claim(l, shape, r.Owed)
}

// unclaimBehindFront removes the claims of all shapes that are not in front of their queue. It reports
// whether that changed anything.
func (s *Scheduler) unclaimBehindFront(l *queueState) (changed bool) {
	front := l.Front()
	for _, shape := range slices.Clone(l.claimants) {
		if front == nil || shape != front.Shape() {
			s.unclaim(l, shape)
			changed = true
		}
	}
	return changed
}

// reviseClaims updates all claims after a charge: shapes with claims may lack more now, and the
// groups at the charged nodes may no longer be owed their demands.
func (s *Scheduler) reviseClaims(group quota.Group) {
	for _, l := range s.claiming {
		for _, shape := range l.claimants {
			if r := l.Group.Fits(shape.Demand); r != nil {
				s.claim(l, shape, r.Owed)
			}
		}
	}
	if len(s.claiming) == 0 {
		return
	}
	for _, node := range group.Nodes() {
		l := s.queueAt[node]
		if l == nil {
			continue
		}
		for _, shape := range slices.Clone(l.claimants) {
			if !l.Group.Owed(shape.Demand) {
				s.unclaim(l, shape)
				l.Retry(shape)
				s.activate(l)
			}
		}
	}
}
