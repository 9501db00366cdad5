package scheduler

import (
	"cmp"
	"math"
	"slices"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// ledger holds the reservations: room kept for waiting shapes, the holders. Charges are not in the ledger, because the
// backend counts them.
//
// A shape holds a reservation while it only lacks what its group is owed and others have borrowed. No more of that can
// be borrowed. The reservation covers every space in which the shape has lacked room since it began to wait, because it
// can lack room in another space each time a borrower ends. The reservation ends when the group is no longer owed the
// demand, when the shape lacks anything else, or when it has no items left. If the queue only tries its front, it also
// ends when another shape is in front.
//
// For each queue and space, only the largest reservation is kept from others: any of the queue's shapes can use it, and
// the guarantee of the group covers at least one of them.
//
// A change of usage affects only the reservations that depend on it: the ledger stores how much room each of them
// needs in which spaces.
type ledger struct {
	lender  quota.Lender
	holders map[*queue.Shape]*reservation
	spaces  map[quota.Space]*reservedSpace
	// watches are the conditions of the reservations by space. Those that need the most room come first.
	watches map[quota.Space]*queue.Heap[*watch]
	// reviews counts the reservations that were checked again after a charge.
	reviews int
	// grown are the nodes at which more was reserved. Items below them that were about to be tried may no longer fit.
	grown []quota.NodeID
}

// reservation is one entry of the ledger.
type reservation struct {
	queue   *queueState
	shape   *queue.Shape
	amounts []*reservedAmount
	watches []*watch
}

// reservedAmount is an amount, in base units, that is reserved in a space.
type reservedAmount struct {
	quota.Lack
	reservation *reservation
	place       int32
}

// reservedSpace holds what is reserved in one space, by queue.
type reservedSpace struct {
	byQueue map[*queueState]*queue.Heap[*reservedAmount]
}

// watch is a condition of a reservation: at least Amount is left in the space.
type watch struct {
	quota.Lack
	reservation *reservation
	place       int32
}

func newLedger(lender quota.Lender) *ledger {
	return &ledger{lender: lender, holders: map[*queue.Shape]*reservation{}, spaces: map[quota.Space]*reservedSpace{},
		watches: map[quota.Space]*queue.Heap[*watch]{}}
}

// order compares reservations by queue and shape.
func (r *reservation) order(other *reservation) int {
	return cmp.Or(cmp.Compare(r.queue.name, other.queue.name), cmp.Compare(r.shape.Key(), other.shape.Key()))
}

// reserve adds the amounts to what is reserved for the shape.
func (l *ledger) reserve(q *queueState, shape *queue.Shape, amounts []quota.Lack) {
	r := l.holders[shape]
	if r == nil {
		r = &reservation{queue: q, shape: shape}
		l.holders[shape] = r
		q.reservations = append(q.reservations, r)
	}
	for _, amount := range amounts {
		if !slices.ContainsFunc(r.amounts, func(a *reservedAmount) bool { return a.Space == amount.Space }) {
			a := &reservedAmount{Lack: amount, reservation: r}
			r.amounts = append(r.amounts, a)
			l.change(a, (*queue.Heap[*reservedAmount]).Set)
		}
	}
	l.watch(r)
}

// release removes the reservation of the shape, if it has one, and calls freed for each space in which less is
// reserved.
func (l *ledger) release(shape *queue.Shape, freed func(quota.Space)) {
	r := l.holders[shape]
	if r == nil {
		return
	}
	delete(l.holders, shape)
	r.queue.reservations = slices.DeleteFunc(r.queue.reservations, func(other *reservation) bool { return other == r })
	for _, a := range r.amounts {
		if l.change(a, (*queue.Heap[*reservedAmount]).Remove) {
			freed(a.Space)
		}
	}
	for _, w := range r.watches {
		l.unwatch(w)
	}
}

// change adds an amount to its space or removes it, and reports whether less is reserved there afterwards.
func (l *ledger) change(a *reservedAmount, do func(*queue.Heap[*reservedAmount], *reservedAmount)) (less bool) {
	space, q := l.spaces[a.Space], a.reservation.queue
	if space == nil {
		space = &reservedSpace{byQueue: map[*queueState]*queue.Heap[*reservedAmount]{}}
		l.spaces[a.Space] = space
	}
	amounts := space.byQueue[q]
	if amounts == nil {
		amounts = queue.NewHeap(func(a, b *reservedAmount) bool { return a.Amount > b.Amount }, func(a *reservedAmount) *int32 { return &a.place })
		space.byQueue[q] = amounts
	}
	before := greatest(amounts)
	do(amounts, a)
	after := greatest(amounts)
	if amounts.Len() == 0 {
		delete(space.byQueue, q)
		if len(space.byQueue) == 0 {
			delete(l.spaces, a.Space)
		}
	}
	if before == after {
		return false
	}
	l.lender.Reserve(a.Node, a.Resource, after-before)
	if after > before {
		l.grown = append(l.grown, a.Node)
	}
	return after < before
}

func greatest(amounts *queue.Heap[*reservedAmount]) int64 {
	if top, ok := amounts.Top(); ok {
		return top.Amount
	}
	return 0
}

// watch stores the conditions of the reservation that are met: there is room for what the shape does not lack, within
// the limits and guarantees of its group, and what it lacks is borrowed.
func (l *ledger) watch(r *reservation) {
	if r.watches == nil {
		for _, node := range r.queue.Group.Nodes() {
			for _, a := range r.shape.Demand.Requests {
				for _, bound := range [...]quota.Bound{quota.Max, quota.Min, quota.OwnMin} {
					space := quota.Space{Node: node, Resource: a.ID, Bound: bound}
					if l.lender.Room(space) < math.MaxInt64 { // otherwise there is no bound
						r.watches = append(r.watches, &watch{reservation: r, Lack: quota.Lack{Space: space, Amount: a.Value}})
					}
				}
			}
		}
	}
	for _, a := range r.amounts {
		space := a.Space
		space.Bound = quota.Borrowers
		if !slices.ContainsFunc(r.watches, func(w *watch) bool { return w.Space == space }) {
			r.watches = append(r.watches, &watch{reservation: r, Lack: quota.Lack{Space: space, Amount: 1}})
		}
	}
	for _, w := range r.watches {
		if w.place == 0 && w.isMet(l.lender) {
			l.watchesOf(w.Space).Set(w)
		}
	}
}

func (w *watch) isMet(backend quota.Backend) bool {
	return w.Amount > 0 && w.Amount <= backend.Room(w.Space)
}

func (l *ledger) watchesOf(space quota.Space) *queue.Heap[*watch] {
	watches := l.watches[space]
	if watches == nil {
		watches = queue.NewHeap(func(a, b *watch) bool {
			return cmp.Or(cmp.Compare(b.Amount, a.Amount), a.reservation.order(b.reservation)) < 0
		}, func(w *watch) *int32 { return &w.place })
		l.watches[space] = watches
	}
	return watches
}

func (l *ledger) unwatch(w *watch) {
	if w.place == 0 {
		return
	}
	watches := l.watches[w.Space]
	watches.Remove(w)
	if watches.Len() == 0 {
		delete(l.watches, w.Space)
	}
}

// concerned removes and returns the reservations with a condition that is no longer met after the group's usage of
// the resources changed, in a fixed order.
func (l *ledger) concerned(group quota.Group, changed resources.Vector) []*reservation {
	if len(l.holders) == 0 {
		return nil
	}
	var found []*reservation
	for _, node := range group.Nodes() {
		for _, a := range changed {
			for _, bound := range [...]quota.Bound{quota.Max, quota.Min, quota.OwnMin, quota.Borrowers} {
				space := quota.Space{Node: node, Resource: a.ID, Bound: bound}
				for watches := l.watches[space]; watches != nil && watches.Len() > 0; {
					w, _ := watches.Top()
					if w.isMet(l.lender) {
						break
					}
					l.unwatch(w)
					found = append(found, w.reservation)
				}
			}
		}
	}
	slices.SortFunc(found, (*reservation).order)
	return slices.Compact(found)
}

// reserveOwed reserves what the refusal reports as owed to the shape. If it reports nothing, the reservation ends.
func (s *Scheduler) reserveOwed(q *queueState, shape *queue.Shape, refusal *quota.Refusal) {
	switch {
	case s.ledger == nil:
	case len(refusal.Owed) > 0 && !s.hasClaim(shape):
		s.ledger.reserve(q, shape, refusal.Owed)
	default:
		s.unreserve(shape)
	}
}

// unreserve ends the reservation of the shape.
func (s *Scheduler) unreserve(shape *queue.Shape) {
	if s.ledger != nil {
		s.ledger.release(shape, s.reservedLess)
	}
}

// reservedLess records that less is reserved in the space.
func (s *Scheduler) reservedLess(space quota.Space) {
	s.wake(space)
	s.changes++
}

// unproveGrown marks the items that may no longer fit because room was reserved.
func (s *Scheduler) unproveGrown() {
	if s.ledger == nil {
		return
	}
	for _, node := range s.ledger.grown {
		s.tournament.under(node, s.unprove)
	}
	s.ledger.grown = s.ledger.grown[:0]
}

// grown reports whether more was reserved since unproveGrown.
func (s *Scheduler) grown() bool { return s.ledger != nil && len(s.ledger.grown) > 0 }

// reviewReservations updates the reservations that depend on the group's usage of the resources.
func (s *Scheduler) reviewReservations(group quota.Group, changed resources.Vector) {
	if s.ledger == nil {
		return
	}
	for _, r := range s.ledger.concerned(group, changed) {
		s.ledger.reviews++
		refusal := s.fits(r.queue, r.shape)
		switch {
		case refusal == nil: // it will be tried soon, because what it lacks was freed
			s.ledger.watch(r)
		case len(refusal.Owed) > 0:
			s.reserveOwed(r.queue, r.shape, refusal)
		default:
			s.unreserve(r.shape)
			r.queue.Retry(r.shape)
			s.activate(r.queue)
		}
	}
}

// reserveForFront reserves what is owed to the shape in front of a queue, if the shape waits for that. It computes the
// refusal again, because the shape may lack something else since it was last tried behind others. It reports whether
// anything has changed.
func (s *Scheduler) reserveForFront(q *queueState) bool {
	front := q.Front()
	if s.ledger == nil || front == nil || !front.Shape().Parked() {
		return false
	}
	shape, held := front.Shape(), s.ledger.holders[front.Shape()]
	refusal := s.fits(q, shape)
	switch {
	case refusal == nil:
		return false
	case len(refusal.Owed) > 0:
		s.reserveOwed(q, shape, refusal)
		return held == nil || s.grown()
	case held != nil || refusal.Lack != shape.Refusal().Lack || !slices.Equal(refusal.Also, shape.Refusal().Also):
		s.unreserve(shape) // it is retried, to be parked under what it lacks now
		q.Retry(shape)
		s.activate(q)
		return true
	default:
		return false
	}
}

// unreserveBehindFront ends the reservations of all shapes that are not in front of their queue. It reports whether
// there were any.
func (s *Scheduler) unreserveBehindFront(q *queueState) (changed bool) {
	front := q.Front()
	for _, r := range slices.Clone(q.reservations) {
		if front == nil || r.shape != front.Shape() {
			s.unreserve(r.shape)
			changed = true
		}
	}
	return changed
}
