package scheduler

import (
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// ChargeOf is what is charged to a unit; nil if nothing is.
func (s *Scheduler) ChargeOf(key string) *quota.Charge {
	if u := s.units[key]; u != nil && u.charged != nil {
		return &u.charged.Charge
	}
	return nil
}

// Stored counts what the core stores.
type Stored struct {
	Units, Holders, Strays, Queues, Settings int
	Shapes, Parked, Claims, Changes, Timers  int
	Freed, Exceeded, OverQuota, Unwritten    int
}

// Stored returns how much the core stores.
func (s *Scheduler) Stored() Stored {
	stored := Stored{Units: len(s.units), Holders: len(s.holders), Strays: len(s.strays), Queues: len(s.queues), Settings: len(s.settings),
		Parked: s.waitIndex.Len(), Timers: s.timers.units.Len(), Freed: len(s.freed), Exceeded: len(s.over.since), OverQuota: len(s.over.shown),
		Changes:   s.explainer.changes.Len(),
		Unwritten: len(s.outbox.ready) + len(s.outbox.explanations) + len(s.outbox.impossible) + s.outbox.explaining + s.outbox.urgent}
	for _, l := range s.queues {
		l.Shapes(func(*queue.Shape) { stored.Shapes++ })
		stored.Claims += len(l.claims)
	}
	return stored
}
