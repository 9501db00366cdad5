package scheduler

import "time"

func (e KindsChanged) apply(s *Scheduler, now time.Time) {
	before := s.off
	s.off = e.Off
	var changed []*unit
	for _, u := range s.units {
		if (before[u.Kind] == nil) != (e.Off[u.Kind] == nil) {
			changed = append(changed, u)
		}
	}
	for _, u := range sortByKey(changed) {
		s.settle(u, now)
	}
}

// isForsaken reports whether an admitted unit has no pods, or only idle ones, and its kind is off, so nothing releases
// its job or reports its end. Its operator has PodlessAfter to create pods.
func (s *Scheduler) isForsaken(u *unit, now time.Time) bool {
	at := s.forsakenAt(u)
	return at > 0 && instantOf(now) >= at && s.pods.Busy(u.holder.Holder) == 0
}

// forsakenAt returns when the unit is forsaken, if it has no busy pods then; 0 if it cannot be.
func (s *Scheduler) forsakenAt(u *unit) instant {
	if s.off[u.Kind] == nil || u.Phase != Dequeued || u.Over || u.holder == nil {
		return 0
	}
	return max(u.dequeuedAt, u.holder.podsGoneAt).plus(PodlessAfter)
}
