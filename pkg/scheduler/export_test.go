package scheduler

import (
	"math"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// ChargeOf returns the charge of a unit; nil if there is none.
func (s *Scheduler) ChargeOf(key string) *quota.Charge {
	if u := s.units[key]; u != nil && u.charged != nil {
		return &u.charged.Charge
	}
	return nil
}

// EachCharge calls do for each charge. gone is whether the group no longer exists.
func (s *Scheduler) EachCharge(do func(path string, gone bool, c *quota.Charge)) {
	each := func(c *charge) {
		if c != nil {
			do(c.group.Path(), c.group.Queue() == "", &c.Charge)
		}
	}
	for _, u := range s.units {
		each(u.charged)
	}
	for _, h := range s.holders {
		each(h.left)
	}
	for _, c := range s.strays {
		each(c)
	}
}

// Claims returns the number of units that room is kept for while others leave it.
func (s *Scheduler) Claims() int { return s.made }

// Grown is an elastic unit that was admitted in the last round.
type Grown struct {
	Pods      int32
	Reclaimed bool // it was owed room that was made for it
}

// Grown returns by key the elastic units that were admitted in the last round.
func (s *Scheduler) Grown() map[string]Grown {
	grown := map[string]Grown{}
	for _, u := range s.growing {
		if !u.gone && u.assumed { // otherwise the decision was withdrawn
			grown[u.key()] = Grown{u.Elastic.pods(), u.reclaimed}
		}
	}
	return grown
}

// Reviews returns how often reservations were checked again after a charge.
func (s *Scheduler) Reviews() int { return s.ledger.reviews }

// Stored counts what the core stores.
type Stored struct {
	Units, Holders, Strays, Queues, Settings int
	Shapes, Parked, Changes, Timers          int
	Reservations, Reserved, Watches          int
	Freed, Exceeded, OverQuota, Unwritten    int
	Checks, CheckTimers, Bookings, Delayed   int
}

// Stored returns how much the core stores.
func (s *Scheduler) Stored() Stored {
	stored := Stored{Units: len(s.units), Holders: len(s.holders), Strays: len(s.strays), Queues: len(s.queues), Settings: len(s.settings),
		Parked: s.waitIndex.Len(), Timers: s.timers.units.Len(), Freed: len(s.freed), Exceeded: len(s.over.since), Checks: len(s.checks), CheckTimers: len(s.timers.checks), OverQuota: len(s.over.shown),
		Bookings: len(s.bookings), Delayed: len(s.delayed),
		Changes:   s.explainer.changes.Len() + s.explainer.looks.Len() + len(s.explainer.history),
		Unwritten: len(s.outbox.ready) + len(s.outbox.explanations) + len(s.outbox.impossible) + len(s.outbox.prompt) + len(s.outbox.rest) + s.outbox.explaining + s.outbox.urgent}
	for _, q := range s.queues {
		q.Shapes(func(*queue.Shape) { stored.Shapes++ })
	}
	if l := s.ledger; l != nil {
		stored.Reservations, stored.Reserved, stored.Watches = len(l.holders), len(l.spaces), len(l.watches)
	}
	return stored
}

// Outdated lists the units that show a cause that is no longer true, except for causes that come and go.
func (s *Scheduler) Outdated(now time.Time) (keys []string) {
	began := now.Add(-ReasonInterval) // a cause that came and went then may wait until now
	for key, u := range s.units {
		r := u.refusal(now)
		if r == nil || u.HeldReported && u.Held != nil || u.shows(r.Cause()) || !s.isOutdated(u, now) || s.explainer.comesAndGoes(u, r.Cause(), began) {
			continue
		}
		if u.requeueAt != 0 && instantOf(now) < u.requeueAt.plus(2*time.Second) {
			continue // its backoff has just ended
		}
		keys = append(keys, key+" shows "+string(u.shown.last().Reason)+" and waits because of "+string(r.Reason))
	}
	return keys
}

// AUnit has the size of a unit.
var AUnit unit

// Bookings returns the units with bookings, and the latest time at which they can start; zero if unknown.
func (s *Scheduler) Bookings() map[string]time.Time {
	all := map[string]time.Time{}
	for _, b := range s.bookings {
		all[b.unit.key()] = time.Time{}
		if b.start != math.MaxInt64 {
			all[b.unit.key()] = b.start.time()
		}
	}
	return all
}
