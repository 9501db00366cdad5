package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// restoreClaims restores the claims of units that others are already being evicted for.
func (s *Scheduler) restoreClaims(now time.Time) {
	if s.seekClaimants {
		s.seekClaimants = false
		for _, u := range s.inOrder() {
			if len(s.victims[u.UID]) > 0 {
				s.claimants = append(s.claimants, u.key())
			}
		}
	}
	claimants := make([]*unit, 0, len(s.claimants))
	for _, key := range s.claimants {
		if u := s.units[key]; u != nil {
			claimants = append(claimants, u)
		}
	}
	s.claimants = nil
	slices.SortStableFunc(claimants, func(a, b *unit) int { // so that others do not get the room of their victims
		return cmp.Compare(min(len(s.victims[b.UID]), 1), min(len(s.victims[a.UID]), 1))
	})
	for _, u := range claimants {
		s.eachVictim(u, func(v *unit) {
			if at := v.leaving.at; at != 0 && at <= u.dequeuedAt {
				s.serve(v)
			}
		})
		if s.planner == nil || u.item.Shape() == nil || u.claim != nil && u.claim.made {
			continue
		}
		if r := u.item.Shape().Refusal(); r != nil && r.Final() {
			continue
		}
		fits, owed := len(s.victims[u.UID]) > 0, s.isOwed(u)
		if !fits {
			fits, owed = s.fitsAsPlanned(u.queue, u)
		}
		if !fits {
			continue
		}
		s.keepRoom(u, owed, now)
		u.claim.restored = true
		s.claimsStale = true
	}
}

// fitsAsPlanned reports whether a unit that can make room fits without evictions of its own once everything planned
// is done, and whether it is owed that room.
func (s *Scheduler) fitsAsPlanned(q *queueState, u *unit) (fits, owed bool) {
	if !s.mayReclaim(q, u) && !s.mayPreempt(q, u) {
		return false, false
	}
	s.exempt(q, &u.item, func() {
		owed = s.reclaims && s.isOwedAsPlanned(q, u)
		s.planner.AsPlanned(func() { fits = q.Group.Fits(u.Demand) == nil })
	})
	return fits, owed
}

// isOwed reports whether a victim of the unit belongs to another group, which means that it was reclaimed.
func (s *Scheduler) isOwed(u *unit) bool {
	return slices.ContainsFunc(s.victims[u.UID], func(v *unit) bool {
		return v.charged != nil && v.charged.group.Path() != u.queue.Group.Path()
	})
}
