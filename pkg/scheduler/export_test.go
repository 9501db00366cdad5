package scheduler

import "kube-queue.dev/kube-queue/pkg/quota"

// ChargeOf is what is charged to a unit; nil if nothing is.
func (s *Scheduler) ChargeOf(key string) *quota.Charge {
	if u := s.units[key]; u != nil && u.charged != nil {
		return &u.charged.Charge
	}
	return nil
}
