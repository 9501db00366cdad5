package scheduler

import (
	"math"
	"slices"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// A shape that waits for what its group is owed, because others have borrowed it,
// claims it: nobody may borrow more there. Its claims last from the refusal that
// found them until it is refused for another cause or has no items left.

// claim makes these the claims of a shape, in place of those that it had.
func (s *Scheduler) claim(l *line, shape *queue.Shape, spaces []quota.Space) {
	before := shape.Claims
	if len(before) == 0 && len(spaces) == 0 {
		return
	}
	shape.Claims = spaces
	switch {
	case len(before) == 0:
		l.claimants = append(l.claimants, shape)
	case len(spaces) == 0:
		l.claimants = slices.DeleteFunc(l.claimants, func(c *queue.Shape) bool { return c == shape })
	}
	for _, space := range spaces {
		s.lender.Pause(space.Node, space.Resource)
		s.contest.under(space.Node, s.unprove)
	}
	for _, space := range before {
		if s.lender.Resume(space.Node, space.Resource) {
			s.wake(quota.Space{Node: space.Node, Resource: space.Resource, Bound: quota.Lending}, math.MaxInt64)
		}
	}
}

// claimForFront has the shape in front of a line claim what it is refused though it
// is owed it, and no other; it tells whether that changed anything.
func (s *Scheduler) claimForFront(l *line) (changed bool) {
	if s.lender == nil {
		return false
	}
	var front *queue.Shape
	if item := l.Front(); item != nil {
		front = item.Shape()
	}
	for _, shape := range slices.Clone(l.claimants) {
		if shape != front {
			s.claim(l, shape, nil)
			changed = true
		}
	}
	if front != nil && len(front.Claims) == 0 && front.Parked() && len(front.Refusal().Owed) > 0 && l.Group.Owed(front.Demand) {
		s.claim(l, front, front.Refusal().Owed)
		changed = true
	}
	return changed
}

// reviseClaims has shapes tried again that claim what their groups are owed no
// longer, since something was charged to this group.
func (s *Scheduler) reviseClaims(group quota.Group) {
	if s.lender == nil {
		return
	}
	for _, node := range group.Nodes() {
		l := s.lineAt[node]
		if l == nil {
			continue
		}
		for _, shape := range slices.Clone(l.claimants) {
			if !l.Group.Owed(shape.Demand) {
				s.claim(l, shape, nil)
				l.Retry(shape)
				s.activate(l)
			}
		}
	}
}

// wake makes ready what the room in a space could hold.
func (s *Scheduler) wake(space quota.Space, room int64) {
	s.lot.Wake(space, room, func(q *queue.Queue) { s.activate(s.lines[q.Group.Queue()]) })
}
