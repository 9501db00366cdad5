package scheduler

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// booking is the room that the unit of a queue gets that has waited longest, once it has waited for ReserveAfter. Like
// in EASY backfilling (Lifka, 1995), units that come after it are admitted only if they end before it can start, or fit
// beside it.
//
// It starts at the latest when the units that use its room have run for their maximum execution times. Units that have
// none never end as far as is known; the booking then has no start, and others must fit beside. A booking stays with its
// unit until that is admitted or leaves the queue: if the unit were chosen again and again, none would ever start.
//
// A booking is not part of the plan of claims, because that is about units that are already stopping. It is added to the
// plan only while somebody is tried.
type booking struct {
	unit  *unit
	queue *queueState
	// start is when the unit can start at the latest; the greatest instant if that is not known.
	start instant
	// ending are the charges that end until then, one for each group. planned is the charge of the unit.
	ending  []charge
	planned quota.Charge
	// isPossible is whether the unit fits once enough others have ended. Otherwise, the booking binds nobody.
	isPossible bool
	// changes is what claims.changes was when this was computed.
	changes uint64
}

// scanInterval is how often a queue without a booking looks for the unit that has waited longest, because that takes
// time proportional to the number of units.
const scanInterval = time.Second

// book updates the bookings of all queues.
func (s *Scheduler) book(now time.Time) {
	if s.planner == nil {
		return
	}
	for _, b := range slices.Clone(s.bookings) {
		u, q := b.unit, b.queue
		isOver := u.gone || u.queue != q || u.item.Shape() == nil || q.set.ReserveAfter == 0 || u.claim != nil && u.claim.made
		if isOver || q.Policy.FrontOnly && q.Front() != &u.item {
			s.unbook(b)
		}
	}
	for _, q := range s.order {
		if q.set.ReserveAfter > 0 && q.booking == nil {
			s.bookOldest(q, now)
		}
	}
	for _, b := range s.bookings {
		if b.changes != s.changes {
			s.plan(b, now)
		}
	}
}

// hasStaleBookings reports whether something has changed since a booking was computed.
func (s *Scheduler) hasStaleBookings() bool {
	return slices.ContainsFunc(s.bookings, func(b *booking) bool { return b.changes != s.changes })
}

// bookOldest books room for the unit of the queue that has waited longest, if it has waited for long enough.
func (s *Scheduler) bookOldest(q *queueState, now time.Time) {
	submissions, any := q.Submissions()
	if !any || now.Sub(submissions.First) < q.set.ReserveAfter || q.blocks() || instantOf(now) < q.scanAt {
		return
	}
	q.scanAt = instantOf(now).plus(scanInterval)
	first := q.Front()
	if !q.Policy.FrontOnly {
		first = q.Oldest(func(item *queue.Item) bool { c := s.units[item.Key].claim; return c == nil || !c.made })
	}
	if first == nil {
		return
	}
	oldest := s.units[first.Key]
	if oldest.claim != nil && oldest.claim.made { // it gets its room by evictions
		return
	}
	if now.Sub(time.UnixMicro(oldest.Submitted)) < q.set.ReserveAfter || s.isBookedAbove(q, oldest) {
		return
	}
	b := &booking{unit: oldest, queue: q}
	s.dropClaim(oldest)
	s.remove(oldest)
	q.PushAlone(&oldest.item, oldest.Demand, q.lengthOf(oldest)) // it is tried alone, because the booking does not bind it
	q.booking = b
	s.bookings = append(s.bookings, b)
	s.plan(b, now)
	s.activate(q)
	nodes := q.Group.Nodes()
	s.tournament.under(nodes[len(nodes)-1], s.unprove) // units that were about to be tried may delay it
}

// isBookedAbove reports whether a limit above the queue's own is already booked for a unit of another queue: bookings of
// all queues together could keep a whole cluster unused.
func (s *Scheduler) isBookedAbove(q *queueState, u *unit) bool {
	return slices.ContainsFunc(s.bookings, func(b *booking) bool {
		return slices.ContainsFunc(q.Group.Nodes()[1:], func(n quota.NodeID) bool {
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

// unbook ends a booking.
func (s *Scheduler) unbook(b *booking) {
	b.queue.booking = nil
	s.bookings = slices.DeleteFunc(s.bookings, func(other *booking) bool { return other == b })
	if u := b.unit; u.queue == b.queue && u.item.Shape() != nil && (u.claim == nil || !u.claim.made) {
		s.remove(u)
		b.queue.Push(&u.item, u.Demand, b.queue.lengthOf(u))
		s.activate(b.queue)
	}
	s.retryDelayed()
}

// plan computes when the unit of a booking can start at the latest, and what has ended until then: of the units whose
// ends are known, those that end first, and if they are not enough, all others, those that started first.
func (s *Scheduler) plan(b *booking, now time.Time) {
	b.planned = quota.Charge{Demand: b.unit.Demand}
	var candidates []*unit
	nodes := b.queue.Group.Nodes()
	for _, q := range s.order {
		if q.holding > 0 && slices.Contains(q.Group.Nodes(), nodes[len(nodes)-1]) {
			for _, h := range q.holders() {
				if h.charged != nil && (h.leaving == nil || h.leaving.planned == nil) { // what is stopping is planned already
					candidates = append(candidates, h)
				}
			}
		}
	}
	end := func(h *unit) instant {
		if h.assumed && h.MaxSeconds > 0 { // its release is being written
			return instantOf(now).plus(time.Duration(h.MaxSeconds) * time.Second)
		}
		return cmp.Or(h.endsAt(), math.MaxInt64)
	}
	slices.SortFunc(candidates, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(end(a), end(b)), cmp.Compare(a.dequeuedAt, b.dequeuedAt), strings.Compare(a.key(), b.key()))
	})
	n := sort.Search(len(candidates)+1, func(n int) bool { // more of them never make it fit less
		return n > len(candidates) || s.fitsAfter(b, candidates[:n])
	})
	b.start, b.ending, b.isPossible = instantOf(now), nil, n <= len(candidates)
	if b.isPossible && n > 0 {
		b.start, b.ending = end(candidates[n-1]), endingOf(candidates[:n])
	}
	b.changes = s.changes
	s.retryDelayed()
}

// endingOf returns what the units are charged, summed by group.
func endingOf(units []*unit) (all []charge) {
	type kind struct {
		group       quota.Group
		preemptible bool
	}
	places := map[kind]int{}
	for _, h := range units {
		k := kind{h.charged.group, h.charged.Demand.Preemptible}
		at, known := places[k]
		if !known {
			at = len(all)
			places[k] = at
			all = append(all, charge{group: k.group, Charge: quota.Charge{Demand: quota.Demand{Preemptible: k.preemptible}}})
		}
		all[at].Demand.Requests = all[at].Demand.Requests.Plus(h.charged.Total())
	}
	return all
}

// fitsAfter reports whether the unit of the booking fits once the units have ended.
func (s *Scheduler) fitsAfter(b *booking, ended []*unit) (fits bool) {
	ending := endingOf(ended)
	s.planEnds(ending, func() {
		s.exempt(b.queue, &b.unit.item, func() {
			s.planner.AsPlanned(func() { fits = b.queue.Group.Fits(b.unit.Demand) == nil })
		})
	})
	return fits
}

// planEnds calls do while it is planned that the charges end.
func (s *Scheduler) planEnds(ending []charge, do func()) {
	for i := range ending {
		s.planner.PlanUncharge(ending[i].group, &ending[i].Charge)
	}
	do()
	for i := range ending {
		s.planner.Plan(ending[i].group, &ending[i].Charge)
	}
}

// delays returns why the first item of a shape, which fits, is not admitted: it would delay a unit with a booking; nil
// if it delays none. The shape is tried again when more room becomes free where it lacks it, or when a booking changes.
func (s *Scheduler) delays(q *queueState, shape *queue.Shape, now time.Time) (refusal *quota.Refusal) {
	inside, bound := int64(0), false
	check := func() {
		if refusal = q.Group.Fits(shape.Demand); refusal != nil {
			inside = s.room(refusal.Lack.Space)
		}
	}
	for _, b := range s.bookings {
		if b.isPossible && s.binds(b, q, shape, now) {
			bound = true
			before := check
			check = func() {
				s.planEnds(b.ending, func() {
					s.planner.Plan(b.queue.Group, &b.planned)
					before()
					s.planner.PlanUncharge(b.queue.Group, &b.planned)
				})
			}
		}
	}
	if !bound {
		return nil
	}
	if check(); refusal == nil {
		return nil
	}
	refusal.Note = cmp.Or(refusal.Note, "the rest is reserved for a job that has waited longer")
	space := refusal.Lack.Space
	if space.Bound == quota.Kept {
		space.Bound = quota.Max // without the booking, nothing is kept
	}
	refusal.Lack = quota.Lack{Space: space, Amount: resources.AddTimes(refusal.Lack.Amount, s.room(space)-inside, 1)}
	for _, bound := range [...]quota.Bound{quota.Min, quota.OwnMin} { // when it is owed, the booking does not bind it
		for _, a := range shape.Demand.Requests {
			if own := (quota.Space{Node: q.Group.Nodes()[0], Resource: a.ID, Bound: bound}); s.room(own) < math.MaxInt64 {
				refusal.Also = append(refusal.Also, quota.Lack{Space: own, Amount: a.Value})
			}
		}
	}
	s.delay = refusal
	return refusal
}

// isDelay reports whether the refusal is because of a booking. Evictions do not help against it.
func (s *Scheduler) isDelay(r *quota.Refusal) bool { return r == s.delay }

// refused records whether a shape is refused because of a booking.
func (s *Scheduler) refused(shape *queue.Shape, r *quota.Refusal) {
	if s.isDelay(r) {
		s.delayed[shape] = true
	} else {
		delete(s.delayed, shape)
	}
}

// retryDelayed tries the shapes again that were refused because of a booking.
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

// binds reports whether a booking binds the first item of a shape. It does not bind the unit itself, units with higher
// priority in the same queue, units that others are evicted for, units that are owed what they request, and those that end before the unit can start.
func (s *Scheduler) binds(b *booking, q *queueState, shape *queue.Shape, now time.Time) bool {
	u := s.units[shape.Head().Key]
	switch {
	case u == b.unit, u.claim != nil && u.claim.made, q == b.queue && shape.Head().Priority > b.unit.item.Priority:
		return false
	case q != b.queue && q.Group.Owed(shape.Demand, quota.Branch{Node: q.Group.Nodes()[0]}):
		return false
	case u.MaxSeconds > 0 && b.start != math.MaxInt64 && instantOf(now).plus(time.Duration(u.MaxSeconds)*time.Second) <= b.start:
		return false
	}
	return true
}
