package scheduler

import (
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// queueState is a queue, its settings and its counts.
type queueState struct {
	*queue.Queue
	name string
	// branch is the queue's branch in the tournament.
	branch *branch
	// set are the settings of an administrator.
	set QueueChanged
	// checks are the names of the queue's admission checks. missingCheck is one that does not exist; empty if all do.
	checks       []string
	missingCheck string
	// awaiting are the admitted units whose pods are not ready yet, if the queue waits for them.
	awaiting map[*unit]struct{}
	// tried is the item to try next; nil if there is none.
	tried      *queue.Item
	unproven   bool
	checkFront bool
	front      *unit
	// attempts is whether the item that the queue tries does not fit but might make room.
	attempts bool
	evictions
	// booking is the booking of a unit of the queue; nil if there is none. oldest is the unit that seekOldest last found;
	// nil if it found none. It does not look again before scanAt.
	booking *booking
	oldest  *unit
	scanAt  instant
	// besideBookings is whether any queue can have a booking.
	besideBookings bool
	// learned is what past jobs tell about those that wait.
	learned forecast.Learned
	// reservations are the reservations of the queue's shapes.
	reservations []*reservation
	// causeChanges are the timers of the explainer for the shapes of the queue.
	causeChanges map[*queue.Shape]*causeChange
	// lookAt is when the explainer compares the first units of the queue. prompt is the queue's budget for
	// corrections before others.
	lookAt    instant
	lookPlace int32
	prompt    promptBudget
	counts    [Ended + 1]int
	changed   bool
	// viewed is the index of the queue in the last View.
	viewed int32
}

func (s *Scheduler) addQueues(groups ...quota.Group) {
	var added []*queueState
	for _, group := range groups {
		q := &queueState{Queue: queue.New(group, s.defaultPolicy, s.waitIndex), name: group.Queue(),
			set: QueueChanged{Queue: group.Queue(), Policy: s.defaultPolicy}, changed: true, besideBookings: s.booking > 0,
			awaiting: map[*unit]struct{}{}, causeChanges: map[*queue.Shape]*causeChange{}}
		if set, ok := s.settings[q.name]; ok {
			q.set, q.Policy = set, set.Policy
			s.setChecks(q)
		}
		s.queues[q.name], s.queueAt[group.Nodes()[0]] = q, q
		added = append(added, q)
	}
	s.tournament.enter(added...)
	s.order = append(s.order, added...)
}

func (e QueueChanged) apply(s *Scheduler, now time.Time) {
	if e.Policy == nil {
		e.Policy = s.defaultPolicy
	}
	was, booked := s.settings[e.Queue].ReserveAfter > 0, s.booking > 0
	if e == (QueueChanged{Queue: e.Queue, Policy: s.defaultPolicy}) {
		delete(s.settings, e.Queue)
	} else {
		s.settings[e.Queue] = e
	}
	switch is := e.ReserveAfter > 0; {
	case is && !was:
		s.booking++
	case was && !is:
		s.booking--
	}
	if books := s.booking > 0; books != booked {
		for _, q := range slices.Clone(s.order) {
			q.besideBookings = books
			s.settleUnitsOf(q, "", now)
		}
	}
	q := s.queues[e.Queue]
	if q == nil || q.set == e {
		return
	}
	if q.Policy != e.Policy {
		q.SetPolicy(e.Policy) // also retries all shapes, because reservations depend on the policy
	}
	if q.set.Preemption != e.Preemption {
		s.retryFailed()
	}
	q.set, q.changed = e, true
	s.setChecks(q)
	s.claimsStale = true
	s.moreToEvict(q)
	s.activate(q)
	s.settleUnitsOf(q, "", now)
}

// reconsider tries all shapes in the queue of a group again: refused shapes may fit now, and others may have become
// impossible.
func (s *Scheduler) reconsider(group quota.Group, now time.Time) {
	q := s.queues[group.Queue()]
	if q == nil {
		s.addQueues(group)
		q = s.queues[group.Queue()]
	}
	q.Shapes(func(shape *queue.Shape) {
		s.explainer.forget(q, shape) // a changed limit is reported like a first cause
		q.Retry(shape)
		s.refuseForGood(q, shape, now)
		for _, item := range shape.Items() {
			s.explainLater(s.units[item.Key], now)
		}
	})
	s.activate(q)
	for _, u := range sortByKey(slices.Clone(q.all)) {
		if u.assumed && u.write.wanted.admits() {
			u.unassume() // the decision is repeated; its write has not been sent
			s.settle(u, now)
		}
	}
	s.dropIdle(q)
}

// dropIdle removes the queue if it has no units and its group exists only while it has some.
func (s *Scheduler) dropIdle(q *queueState) {
	if q.counts != [Ended + 1]int{} || slices.Contains(s.backend.Groups(), q.Group) {
		return
	}
	s.tournament.leave(q)
	delete(s.queues, q.name)
	delete(s.queueAt, q.Group.Nodes()[0])
	isIt := func(other *queueState) bool { return other == q }
	s.order = slices.DeleteFunc(s.order, isIt)
	s.unproven = slices.DeleteFunc(s.unproven, isIt)
	s.frontsToCheck = slices.DeleteFunc(s.frontsToCheck, isIt)
}
