package scheduler

import (
	"slices"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// A shape that waits for what its group is owed, because others have borrowed it,
// claims it: nobody may borrow more there. It claims what it has lacked at any time
// since it waits, for with each end of a borrower it lacks something else. Its claims
// last until its group is not owed the demand any more, it has no items left, or, in a
// line in which only the front is tried, another is in front.

// claim has the shape claim these spaces besides those that it claims.
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

// unclaim has the shape claim nothing.
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

// claimForFront has the shape in front of a line claim what it is refused though it
// is owed it; it reports whether that changed anything. What it was refused when it was
// last tried may be less than what it lacks now: others were in front meanwhile.
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

// unclaimBehindFront has no shape claim anything that is not in front of its line; it
// reports whether that changed anything.
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

// reviseClaims looks at all claims again since something was charged: those who have
// them may lack more now, and those of the group's nodes may be owed it no longer.
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
