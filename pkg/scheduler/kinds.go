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

// isForsaken reports whether nothing releases the job of an admitted unit: its kind is off, and no pod shows that it
// was released before that. Its operator gets the time that it may take to create pods.
func (s *Scheduler) isForsaken(u *unit, now time.Time) bool {
	return s.off[u.Kind] != nil && u.Phase == Dequeued && !u.Over && u.holder != nil &&
		s.pods.Pods(u.holder.Holder) == 0 && instantOf(now) >= u.dequeuedAt.plus(PodlessAfter)
}
