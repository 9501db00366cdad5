package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

const (
	// DefaultEvictionTimeout is the default of Options.EvictionTimeout: how long an evicted unit can take to stop.
	// After that, its room is no longer expected.
	DefaultEvictionTimeout = 5 * time.Minute
	// DefaultMinRunTime is the default MinRunTime of kube-queue-controller. The documentation of Queue states it.
	DefaultMinRunTime = 30 * time.Second
	// MaxStopping is the timeout while all pods of the unit are within their grace periods. Anyone can set a grace period
	// of years, which must not keep others from their guarantee.
	MaxStopping = 40 * time.Minute
	// claimRetry is the shortest time between two attempts of a unit to make room. It doubles up to maxClaimRetry.
	claimRetry    = time.Second
	maxClaimRetry = 10 * time.Second
	// failuresPerRetry is how many attempts to make room can fail in a queue within claimRetry. Each attempt takes
	// time proportional to the number of units that hold quota.
	failuresPerRetry = 16
	// maxPatience is how long a unit waits, from its first attempt, for victims that have not run for their MinRunTime
	// yet. After that, it evicts units that come later in the order of victims and have often run for a long time.
	maxPatience = time.Minute
	// maxFailing is how many units of a queue can have a failed attempt to repeat. The others are tried again when they
	// might fit.
	maxFailing = 64
)

// claims are the claimants, which are the units that others are evicted for, and the room kept for them. A claim keeps
// the claimant's requests from all units except those ahead of it in its queue. It does so in the plan of the backend,
// where claimants are already charged and evicted units are already uncharged, no matter why they are evicted.
//
// A claim ends when its unit is admitted, leaves the queue, or would not fit even as planned. Its unsent evictions
// are then withdrawn. After a restart, claims are restored from two sources: evicted units name their claimant, and a
// unit with reason Preempting is a claimant, even if it needs no victims of its own.
//
// A failed attempt is repeated when something that it depends on may have changed.
type claims struct {
	// victims are the units that are evicted for a claimant, by the claimant's UID.
	victims map[string][]*unit
	// claimants are the keys of units that might be claimants without a claim yet.
	claimants []string
	// seekClaimants is whether any unit might be one, because evictions from before the start were seen.
	seekClaimants bool
	// endedBefore are the evictions that ended in the last minute before the start, until the queues are known.
	endedBefore []ended
	// made is the number of claims that keep room.
	made int
	// claimsStale is whether to check that all claimants still fit as planned.
	claimsStale bool
	// failed are the failed attempts, ordered by when they can be repeated.
	failed *queue.Heap[*claim]
	// changes counts the changes that attempts depend on. scheduleIdle has handled those up to changesSeen.
	changes, changesSeen uint64
	// heldMore are the queues that allow preemption and may now have more units to evict.
	heldMore []*queueState
	// placeless are the units that hold quota but have no queue, because their quota was removed.
	placeless evictions
	// idle are the failed attempts that wait for a change.
	idle []*claim

	// reclaims is whether units are evicted for the guarantee of other groups.
	reclaims   bool
	timeout    time.Duration
	minRunTime time.Duration
}

// ended is the end of an eviction, perhaps for another unit: the objects no longer show why.
type ended struct {
	unit *unit
	at   instant
}

// claim is the attempt of a waiting unit to get room by evictions.
type claim struct {
	unit *unit
	// made is whether the attempt succeeded and room is kept for the unit: planned is charged to the group of the queue in
	// the plan.
	made bool
	// owed is whether the room is made because it is guaranteed to the unit's group. The claim then lasts only while the
	// unit stays within the guarantee, and units ahead of it cannot borrow the room.
	owed bool
	// restored is whether the evictions were decided before the start. More might be needed.
	restored bool
	queue    *queueState
	planned  quota.Charge
	// retryAt is when a failed attempt is repeated; 0 if it is idle. If something changes, it is not repeated before
	// notBefore. wait is how long the last failure makes the unit wait.
	retryAt, notBefore instant
	wait               time.Duration
	// patientUntil is when the unit stops waiting for victims that have not run for their MinRunTime yet; 0 if it has not
	// waited for any.
	patientUntil instant
	changes      uint64
	idle         bool
	place        int32
}

func newClaims(opts Options) claims {
	return claims{victims: map[string][]*unit{}, failed: newFailedClaims(),
		timeout: cmp.Or(opts.EvictionTimeout, DefaultEvictionTimeout), minRunTime: opts.MinRunTime}
}

func newFailedClaims() *queue.Heap[*claim] {
	return queue.NewHeap(func(a, b *claim) bool {
		return cmp.Or(cmp.Compare(a.retryAt, b.retryAt), cmp.Compare(a.unit.item.Key, b.unit.item.Key)) < 0
	}, func(c *claim) *int32 { return &c.place })
}

// forget drops all claims together with the backend. Unsent evictions are withdrawn. Claimants are remembered, because
// units are seen before the quota at the start.
func (c *claims) forget(units []*unit) {
	for _, u := range units {
		if u.claim != nil && u.claim.made {
			c.claimants = append(c.claimants, u.key())
		}
		u.claim = nil
		if u.leaving != nil && u.mayWithdraw() {
			u.write.drop(Evict)
			c.disown(u)
			u.leaving = nil
		}
	}
	c.made, c.claimsStale, c.idle, c.heldMore = 0, false, nil, nil
	c.failed = newFailedClaims()
}

// exempt calls do without the claims that do not bind an item: its own, and those of units behind it in its queue. If
// the item would borrow, the claims of units that are owed their room still bind it, because the item would be
// reclaimed again. If room was made for the item, reservations against borrowing do not bind it either.
func (s *Scheduler) exempt(q *queueState, item *queue.Item, do func()) {
	u := s.units[item.Key]
	if u.claim != nil && u.claim.made {
		inner := do
		do = func() { s.planner.Unreserved(inner) }
	}
	without := func(isExempt func(*claim) bool, do func()) {
		for _, c := range q.claimed {
			if isExempt(c) {
				s.planner.PlanUncharge(q.Group, &c.planned)
			}
		}
		do()
		for _, c := range q.claimed {
			if isExempt(c) {
				s.planner.Plan(q.Group, &c.planned)
			}
		}
	}
	isBehind := func(c *claim) bool { return !q.Before(&c.unit.item, item) }
	borrows := false
	if slices.ContainsFunc(q.claimed, func(c *claim) bool { return c.owed && c.unit != u && isBehind(c) }) {
		without(isBehind, func() { borrows = !s.isOwedAsPlanned(q, u) })
	}
	without(func(c *claim) bool { return isBehind(c) && !(borrows && c.owed && c.unit != u) }, do)
}

// isOwedAsPlanned reports whether the unit stays within the guarantee of its group once everything planned is done.
func (s *Scheduler) isOwedAsPlanned(q *queueState, u *unit) (owed bool) {
	s.planner.AsPlanned(func() { owed = q.Group.Owed(u.Demand, quota.Branch{Node: q.Group.Nodes()[0]}) })
	return owed
}

// isOwedWithoutBorrowers is isOwedAsPlanned without the running units that are behind the unit in its queue. Those
// borrowed their quota while room was kept for the unit.
func (s *Scheduler) isOwedWithoutBorrowers(q *queueState, u *unit) (owed bool) {
	var behind []*charge
	for _, h := range q.holders() {
		if h.charged != nil && h.charged.group == q.Group && (h.leaving == nil || h.leaving.planned == nil) && q.isBehind(h, u) {
			behind = append(behind, h.charged)
			s.planner.PlanUncharge(q.Group, &h.charged.Charge)
		}
	}
	owed = s.isOwedAsPlanned(q, u)
	for _, c := range behind {
		s.planner.Plan(q.Group, &c.Charge)
	}
	return owed
}

// isBehind reports whether a unit that holds quota would come after a waiting unit if it waited too.
func (q *queueState) isBehind(h, waiting *unit) bool {
	return q.Before(&waiting.item, queue.NewItem(h.key(), q.priorityOf(h), h.Submitted, q.lengthOf(h)))
}

// hasClaim reports whether the shape belongs to a unit that room is kept for.
func (s *Scheduler) hasClaim(shape *queue.Shape) bool {
	if s.made == 0 || shape.Len() != 1 {
		return false
	}
	c := s.units[shape.Head().Key].claim
	return c != nil && c.made
}

// keepRoom keeps room for a waiting unit. owed is whether it is owed the room. From now on, it is tried alone.
func (s *Scheduler) keepRoom(u *unit, owed bool, now time.Time) {
	q := u.queue
	s.dropFailure(u)
	u.claim = &claim{unit: u, made: true, owed: owed, queue: q, planned: quota.Charge{Demand: u.Demand}}
	s.remove(u)
	s.push(u, q.PushAlone)
	q.claimed = append(q.claimed, u.claim)
	s.made++
	s.planner.Plan(q.Group, &u.claim.planned)
	s.claimsStale = s.claimsStale || s.mayEndRights(q.Group, u.Demand.Requests)
	s.activate(q)
	s.changes++
	nodes := q.Group.Nodes()
	s.tournament.under(nodes[len(nodes)-1], s.unprove) // units that were about to be tried may use the room
	s.explainLater(u, now)
}

// dropClaim ends the claim of a unit, forgets failed attempts, and withdraws its unsent evictions. The unit keeps its
// own shape.
func (s *Scheduler) dropClaim(u *unit) {
	made := u.claim != nil && u.claim.made
	s.endClaim(u)
	s.eachVictim(u, func(v *unit) { s.withdraw(v) })
	if made {
		s.withdrawOrphans()
	}
}

// endClaim ends the claim of a unit, and forgets failed attempts.
func (s *Scheduler) endClaim(u *unit) {
	c := u.claim
	if c == nil {
		return
	}
	if !c.made {
		s.dropFailure(u)
		return
	}
	u.claim = nil
	s.made--
	c.queue.claimed = slices.DeleteFunc(c.queue.claimed, func(other *claim) bool { return other == c })
	s.planner.PlanUncharge(c.queue.Group, &c.planned)
	s.wakeKept(c.queue.Group, &c.planned)
}

// eachVictim calls do for each unit that is evicted for a claimant. do can remove it.
func (c *claims) eachVictim(of *unit, do func(*unit)) {
	if len(c.victims) == 0 {
		return
	}
	for _, v := range slices.Clone(c.victims[of.UID]) {
		do(v)
	}
}

// wakeKept wakes the shapes that can use room that is no longer kept from them.
func (s *Scheduler) wakeKept(group quota.Group, c *quota.Charge) {
	s.changes++
	s.retryDelayed()
	for _, node := range group.Nodes() {
		for _, a := range c.Total() {
			for _, bound := range [...]quota.Bound{quota.Kept, quota.FixedMin, quota.FixedMax} {
				s.wake(quota.Space{Node: node, Resource: a.ID, Bound: bound})
			}
		}
	}
}

// reviewClaims requests a check of all claims if the plan may no longer hold after the charge was added or is no longer
// planned to end.
func (s *Scheduler) reviewClaims(c *charge) {
	if s.made > 0 && !s.claimsStale {
		s.claimsStale = s.isTooMuchPlanned(c) || s.mayEndRights(c.group, c.Total())
	}
}

// mayEndRights reports whether charging or planning these amounts for the group may have used what claimants in its
// branch are owed.
func (s *Scheduler) mayEndRights(g quota.Group, amounts resources.Vector) (may bool) {
	for _, node := range g.Nodes() {
		q := s.queueAt[node]
		if q == nil || !slices.ContainsFunc(q.claimed, func(c *claim) bool { return c.owed }) {
			continue
		}
		s.planner.AsPlanned(func() {
			may = may || slices.ContainsFunc(amounts, func(a resources.Amount) bool {
				return s.room(quota.Space{Node: node, Resource: a.ID, Bound: quota.Min}) < 0
			})
		})
	}
	return may
}

// isTooMuchPlanned reports whether the plan uses more than there is in a space of the charge.
func (s *Scheduler) isTooMuchPlanned(c *charge) (is bool) {
	s.planner.AsPlanned(func() {
		c.group.Spaces(&c.Charge, func(space quota.Space) {
			switch space.Bound {
			case quota.Max, quota.FixedMin, quota.FixedMax:
				is = is || s.room(space) < 0
			}
		})
	})
	return is
}

// checkClaims ends the claims of units that would not fit even as planned, or that are no longer owed the room kept for
// them. They are then tried like units without a claim.
func (s *Scheduler) checkClaims(now time.Time) {
	if !s.claimsStale {
		return
	}
	s.claimsStale = false
	if s.made == 0 {
		return
	}
	for _, q := range s.order {
		s.checkClaimsOf(q, now)
	}
}

// checkClaimsOf is checkClaims for the units of one queue, last first.
func (s *Scheduler) checkClaimsOf(q *queueState, now time.Time) {
	if len(q.claimed) == 0 {
		return
	}
	claimed := slices.Clone(q.claimed)
	slices.SortFunc(claimed, func(a, b *claim) int {
		if q.Before(&a.unit.item, &b.unit.item) {
			return 1
		}
		return -1
	})
	for _, c := range claimed {
		u, fits, hasRight := c.unit, false, true
		s.exempt(q, &u.item, func() {
			s.planner.AsPlanned(func() { fits = q.Group.Fits(u.Demand) == nil })
			hasRight = !c.owed || s.isOwedAsPlanned(q, u) || s.isOwedWithoutBorrowers(q, u)
		})
		if fits && hasRight {
			continue
		}
		s.giveUp(u, now)
		if !hasRight { // it waits for its turn like all others
			s.eachVictim(u, s.serve)
		}
		if !c.restored {
			s.fail(u, instantOf(now).plus(claimRetry), now)
		}
	}
}

// giveUp ends the claim of a unit, which is then tried like any other.
func (s *Scheduler) giveUp(u *unit, now time.Time) {
	s.dropClaim(u)
	s.remove(u)
	s.push(u, u.queue.Push)
	s.activate(u.queue)
	s.explainLater(u, now)
}

// giveUpBehindFront ends the claims of all units that are not at the front of their queue, if only the front is
// tried. It reports whether there were any.
func (s *Scheduler) giveUpBehindFront(q *queueState, now time.Time) (changed bool) {
	for _, c := range slices.Clone(q.claimed) {
		if front := q.Front(); front != &c.unit.item {
			s.giveUp(c.unit, now)
			changed = true
		}
	}
	return changed
}

// refusal explains why a claimant still waits.
func (c *claim) refusal() *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonPreempting, Sentence: fmt.Sprintf(
		"jobs are being evicted so that this job can start; it waits in queue %s until they have stopped", c.queue.name)}
}
