package scheduler

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// booking is room for the unit that has waited longest in its queue, once it has waited for ReserveAfter. As in EASY
// backfilling (Lifka, 1995), later units are admitted only if they end before it can start, or fit beside it.
//
// The unit starts at the latest when the units that use its room have run for their maximum execution times. If some
// have none, the booking has no start, and others must fit beside it. A booking stays with its unit until the unit is
// admitted, leaves the queue, or would not fit even if all others ended. If the booking kept moving between units, none
// would ever start.
//
// A booking is not part of the plan of claims, because that is about units that are already stopping. It is added to
// the plan only while a unit is tried.
type booking struct {
	unit  *unit
	queue *queueState
	// start is the latest time at which the unit can start; math.MaxInt64 if unknown.
	start instant
	// ending are the charges that end by then, as summed by endingOf. planned is the charge of the unit.
	ending  []charge
	planned quota.Charge
	// changes is the value of claims.changes that this was computed for.
	changes uint64
}

// scanInterval is how often a queue without a booking looks for the unit that has waited longest, which takes time
// proportional to the number of units.
const scanInterval = time.Second

// book updates the bookings of all queues.
func (s *Scheduler) book(now time.Time) {
	if s.planner == nil || s.booking == 0 && len(s.bookings) == 0 {
		return
	}
	for _, b := range slices.Clone(s.bookings) {
		if !b.queue.mayBook(b.unit) {
			s.unbook(b)
		}
	}
	var queues []*queueState
	for _, q := range s.order {
		if q.set.ReserveAfter > 0 && q.booking == nil {
			queues = append(queues, q)
		}
	}
	s.seekOldest(queues, now)
	var due []*unit
	for _, q := range queues {
		if u := q.oldest; u != nil && q.mayBook(u) && now.Sub(time.UnixMicro(u.Submitted)) >= q.set.ReserveAfter {
			due = append(due, u)
		}
	}
	slices.SortFunc(due, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.Submitted, b.Submitted), strings.Compare(a.key(), b.key()))
	})
	for _, u := range due {
		if !s.isBookedAbove(u.queue, u) {
			s.bookFor(u)
		}
	}
	var all []holding
	for _, b := range slices.Clone(s.bookings) {
		if b.changes == s.changes {
			continue
		}
		if all == nil {
			all = s.holdings(now)
			slices.SortFunc(all, func(a, b holding) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.since, b.since)) })
		}
		if !s.plan(b, all, now) {
			b.queue.oldest = nil
			s.unbook(b)
		}
	}
}

// mayBook reports whether the unit waits in the queue and can have its booking. A claimant gets its room from evictions
// instead. Growth cannot, because its submission time is that of its job.
func (q *queueState) mayBook(u *unit) bool {
	return q.set.ReserveAfter > 0 && !u.Growth && !u.gone && u.queue == q && u.item.Shape() != nil && (u.claim == nil || !u.claim.made) &&
		(!q.Policy.FrontOnly || q.Front() == &u.item)
}

// hasStaleBookings reports whether something has changed since a booking was computed.
func (s *Scheduler) hasStaleBookings() bool {
	return slices.ContainsFunc(s.bookings, func(b *booking) bool { return b.changes != s.changes })
}

// seekOldest finds, in each queue, the unit that has waited longest of those that would fit if all others ended.
func (s *Scheduler) seekOldest(queues []*queueState, now time.Time) {
	var due []*queueState
	for _, q := range queues {
		submissions, any := q.Submissions()
		if any && now.Sub(submissions.First) >= q.set.ReserveAfter && instantOf(now) >= q.scanAt && !q.blocks() {
			q.scanAt = instantOf(now).plus(scanInterval)
			due = append(due, q)
		}
	}
	if len(due) == 0 {
		return
	}
	s.planEnds(endingOf(nil, s.holdings(now)), func() {
		for _, q := range due {
			var refused *queue.Shape // the items of a shape are visited in a row
			item := q.Oldest(func(item *queue.Item) bool {
				if item.Shape() == refused || !q.mayBook(s.units[item.Key]) {
					return false
				}
				if !s.fitsLater(q, item) {
					refused = item.Shape()
					return false
				}
				return true
			})
			if q.oldest = nil; item != nil {
				q.oldest = s.units[item.Key]
			}
		}
	})
}

// bookFor books room for a unit. The unit is tried alone, because its booking does not bind it. The caller plans the
// booking.
func (s *Scheduler) bookFor(u *unit) {
	q := u.queue
	s.dropClaim(u)
	s.remove(u)
	s.push(u, q.PushAlone)
	q.booking = &booking{unit: u, queue: q, changes: s.changes - 1}
	s.bookings = append(s.bookings, q.booking)
	s.activate(q)
	nodes := q.Group.Nodes()
	s.tournament.under(nodes[len(nodes)-1], s.unprove) // units that were about to be tried may delay it
}

// isBookedAbove reports whether a booking of another queue uses one of this queue's limits. If all queues had bookings,
// they could keep a whole cluster idle, and two below one limit could wait for each other.
func (s *Scheduler) isBookedAbove(q *queueState, u *unit) bool {
	return slices.ContainsFunc(s.bookings, func(b *booking) bool {
		return slices.ContainsFunc(q.Group.Nodes(), func(n quota.NodeID) bool {
			return slices.Contains(b.queue.Group.Nodes(), n) && slices.ContainsFunc(u.Demand.Requests, func(a resources.Amount) bool {
				return s.room(quota.Space{Node: n, Resource: a.ID}) < math.MaxInt64
			})
		})
	})
}

// unbookUnit ends the booking of a unit, if it has one, after it has left its queue.
func (s *Scheduler) unbookUnit(u *unit) {
	if b := u.queue.booking; b != nil && b.unit == u {
		s.unbook(b)
	}
}

func (s *Scheduler) unbook(b *booking) {
	b.queue.booking = nil
	s.bookings = slices.DeleteFunc(s.bookings, func(other *booking) bool { return other == b })
	if u := b.unit; u.queue == b.queue && u.item.Shape() != nil && (u.claim == nil || !u.claim.made) {
		s.remove(u)
		s.push(u, b.queue.Push)
		s.activate(b.queue)
	}
	s.retryDelayed()
}

// plan computes the latest time at which the unit of a booking can start, and what has ended by then. It counts on all
// holdings in their order: first on units whose ends are known, by their ends, and then on the others, in the order in
// which they were charged. It returns false if all of them are not enough.
//
// So it counts last on units without a known end that came after the booking and fit beside it. Otherwise, another unit
// could take the place of one that has ended, and so on.
func (s *Scheduler) plan(b *booking, all []holding, now time.Time) (isPossible bool) {
	b.planned = quota.Charge{Demand: b.unit.Demand}
	n, most := 0, len(all)+1 // more of them never make it fit less
	var ending, ended []charge
	for counted := 0; n < most; { // ended are the first counted ones, which are not enough
		middle := (n + most) / 2
		more, fits := endingOf(ended, all[counted:middle]), false
		s.planEnds(more, func() { fits = s.fitsLater(b.queue, &b.unit.item) })
		if fits {
			most, ending = middle, more
		} else {
			n, counted, ended = middle+1, middle, more
		}
	}
	if n > len(all) {
		return false
	}
	b.start, b.ending = instantOf(now), ending
	if n > 0 {
		b.start = all[n-1].end
	}
	b.changes = s.changes
	s.retryDelayed()
	return true
}

// holding is the charge of a unit or of what is left of a job.
type holding struct {
	*charge
	// end is the latest time at which it ends; math.MaxInt64 if unknown.
	end instant
}

// holdings returns the charges that can end, except those already planned to end, in no particular order.
func (s *Scheduler) holdings(now time.Time) (all []holding) {
	add := func(units []*unit) {
		for _, u := range units {
			if u.charged == nil || u.leaving != nil && u.leaving.planned != nil {
				continue
			}
			end := cmp.Or(u.endsAt(), math.MaxInt64)
			if u.assumed && u.MaxSeconds > 0 && u.countedPhase() == Dequeued { // its release is being written
				end = instantOf(now).plus(time.Duration(u.MaxSeconds) * time.Second)
			}
			all = append(all, holding{u.charged, end})
		}
	}
	for _, q := range s.order {
		add(q.holders())
	}
	add(s.placeless.holders())
	for _, h := range s.holders { // pods that are left of jobs that have stopped
		switch {
		case h.left != nil:
			all = append(all, holding{h.left, math.MaxInt64})
		case len(h.units) > 0 && !h.units[0].holdsQuota():
			add(h.units[:1])
		}
	}
	return all
}

// endingOf returns the charges, and those that were summed before, by group and by whether they are preemptible.
func endingOf(summed []charge, holdings []holding) []charge {
	type kind struct {
		group       quota.Group
		preemptible bool
	}
	all, places := slices.Clone(summed), map[kind]int{}
	for i, c := range all {
		places[kind{c.group, c.Demand.Preemptible}] = i
	}
	for _, h := range holdings {
		k := kind{h.group, h.Demand.Preemptible}
		at, known := places[k]
		if !known {
			at = len(all)
			places[k] = at
			all = append(all, charge{group: k.group, Charge: quota.Charge{Demand: quota.Demand{Preemptible: k.preemptible}}})
		}
		all[at].Demand.Requests = all[at].Demand.Requests.Plus(h.Total())
	}
	return all
}

// fitsLater reports whether an item of the queue fits once everything planned is done.
func (s *Scheduler) fitsLater(q *queueState, item *queue.Item) (fits bool) {
	s.exempt(q, item, func() {
		s.planner.AsPlanned(func() { fits = q.Group.Fits(s.units[item.Key].Demand) == nil })
	})
	return fits
}

// planEnds calls do while the plan includes the end of the charges.
func (s *Scheduler) planEnds(ending []charge, do func()) {
	for i := range ending {
		s.planner.PlanUncharge(ending[i].group, &ending[i].Charge)
	}
	do()
	for i := range ending {
		s.planner.Plan(ending[i].group, &ending[i].Charge)
	}
}

// delays returns why a unit is not admitted although its demand fits: it would delay a unit with a booking. It returns
// nil if it delays none. Its shape is tried again when the room that it lacks becomes free, or when a booking changes.
func (s *Scheduler) delays(q *queueState, u *unit, d quota.Demand, now time.Time) (refusal *quota.Refusal) {
	inside := int64(0)
	for _, b := range s.binding(q, u, d) { // each on its own, because they share no limit
		if refusal == nil && (b.start == math.MaxInt64 || !q.endsBy(b.start, u, now)) {
			s.planEnds(b.ending, func() {
				s.planner.Plan(b.queue.Group, &b.planned)
				if refusal = q.Group.Fits(d); refusal != nil {
					inside = s.room(refusal.Lack.Space)
				}
				s.planner.PlanUncharge(b.queue.Group, &b.planned)
			})
		}
	}
	if refusal == nil {
		return nil
	}
	refusal.Note = cmp.Or(refusal.Note, "the rest is reserved for a job that has waited longer")
	space := refusal.Lack.Space
	if space.Bound == quota.Kept {
		space.Bound = quota.Max // without the booking, nothing is kept
	}
	refusal.Lack = quota.Lack{Space: space, Amount: resources.AddTimes(refusal.Lack.Amount, s.room(space)-inside, 1)}
	for _, bound := range [...]quota.Bound{quota.Min, quota.OwnMin} { // when it is owed, the booking does not bind it
		for _, a := range d.Requests {
			if own := (quota.Space{Node: q.Group.Nodes()[0], Resource: a.ID, Bound: bound}); s.room(own) < math.MaxInt64 {
				refusal.Also = append(refusal.Also, quota.Lack{Space: own, Amount: a.Value})
			}
		}
	}
	s.delay = refusal
	return refusal
}

// isDelay reports whether the refusal was caused by a booking. Evictions do not help then.
func (s *Scheduler) isDelay(r *quota.Refusal) bool { return r == s.delay }

// refused records whether a shape is refused because of a booking.
func (s *Scheduler) refused(shape *queue.Shape, r *quota.Refusal) {
	if s.isDelay(r) {
		s.delayed[shape] = true
	} else {
		delete(s.delayed, shape)
	}
}

// retryDelayed retries the shapes that were refused because of a booking.
func (s *Scheduler) retryDelayed() {
	shapes := slices.SortedFunc(maps.Keys(s.delayed), func(a, b *queue.Shape) int {
		return cmp.Or(strings.Compare(a.Queue().Group.Queue(), b.Queue().Group.Queue()), strings.Compare(a.Key(), b.Key()))
	})
	clear(s.delayed)
	for _, shape := range shapes {
		if q := s.queues[shape.Queue().Group.Queue()]; q != nil && q.Queue == shape.Queue() && shape.Parked() {
			q.Retry(shape)
			s.activate(q)
		}
	}
}

// binding returns the bookings that bind a unit with a demand, unless it ends before their units can start. A booking
// does not bind its own unit, units with higher priority in the same queue, claimants, and units of other queues that
// are owed the demand.
func (s *Scheduler) binding(q *queueState, u *unit, d quota.Demand) (all []*booking) {
	for _, b := range s.bookings {
		switch {
		case u == b.unit, u.claim != nil && u.claim.made, q == b.queue && q.priorityOf(u) > b.unit.item.Priority:
		case q != b.queue && q.Group.Owed(d, quota.Branch{Node: q.Group.Nodes()[0]}):
		default:
			all = append(all, b)
		}
	}
	return all
}

// endsBy reports whether a unit that is admitted now ends by start. The end of a unit that is Reserved first is unknown.
func (q *queueState) endsBy(start instant, u *unit, now time.Time) bool {
	return u.MaxSeconds > 0 && q.admission() == Dequeue && !q.set.Skipped && instantOf(now).plus(time.Duration(q.limitOf(u))*time.Second) <= start
}

// passed updates the booking after the unit was admitted although the booking binds it. If nothing else has changed, the
// start is the same.
func (b *booking) passed(u *unit, changes uint64, now time.Time) {
	if b.changes != changes-1 || u.charged.since != changes || len(u.charged.Pods) > 0 {
		return
	}
	b.changes = changes
	if u.queue.endsBy(b.start, u, now) {
		b.ending = endingOf(b.ending, []holding{{charge: u.charged}})
	}
}
