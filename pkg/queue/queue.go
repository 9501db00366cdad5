package queue

import (
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// Policy says who may go out of turn.
type Policy string

// The policies; the package comment says what they mean.
const (
	RoundRobin Policy = "RoundRobin"
	Block      Policy = "Block"
	Priority   Policy = "Priority"
)

// Queue is the line of one quota group.
type Queue struct {
	// Group whose quota the items wait for.
	Group quota.Group
	// Policy in force; SetPolicy changes it.
	Policy Policy

	waitIndex *WaitIndex
	shapes    map[string]*Shape
	// line holds the possible shapes, ready and parked, by their first items.
	line *Heap[*Shape]
	// ready holds the shapes that are worth trying.
	ready *Heap[*Shape]
	// stands are where shapes of the queue are parked; those in open may have some
	// that are worth trying.
	buckets map[quota.Space]*bucket
	open    []*bucket
}

// New makes an empty queue whose refused shapes park in the wait index.
func New(group quota.Group, policy Policy, index *WaitIndex) *Queue {
	return &Queue{
		Group:     group,
		Policy:    policy,
		waitIndex: index,
		shapes:    map[string]*Shape{},
		buckets:   map[quota.Space]*bucket{},
		line: NewHeap(func(a, b *Shape) bool { return a.head().Before(b.head()) },
			func(s *Shape) *int { return &s.linePlace }),
		ready: NewHeap(func(a, b *Shape) bool {
			if a.late != b.late {
				return b.late
			}
			return a.head().Before(b.head())
		}, func(s *Shape) *int { return &s.readyPlace }),
	}
}

// Shapes calls do for every shape, in no order that a decision may depend on.
func (q *Queue) Shapes(do func(*Shape)) {
	for _, s := range q.shapes {
		do(s)
	}
}

// Push puts an item in line. A shape that is new to the queue is ready.
func (q *Queue) Push(item *Item, demand quota.Demand) *Shape {
	key := demand.Key()
	s := q.shapes[key]
	if s == nil {
		s = &Shape{Demand: demand, key: key, queue: q,
			items: *NewHeap((*Item).Before, func(i *Item) *int { return &i.place })}
		q.shapes[key] = s
	}
	isNew := s.Len() == 0
	item.shape = s
	s.items.Set(item)
	if isNew {
		q.line.Set(s)
		q.makeReady(s)
	} else {
		q.reorder(s)
	}
	return s
}

// Remove takes an item out of line.
func (q *Queue) Remove(item *Item) {
	s := item.shape
	item.shape = nil
	if s.Len() > 1 {
		s.items.Remove(item)
		q.reorder(s)
		return
	}
	// The order of the heaps looks at the first item: leave them before it goes.
	q.waitIndex.leave(s)
	q.ready.Remove(s)
	q.line.Remove(s)
	s.items.Remove(item)
	delete(q.shapes, s.key)
}

// reorder puts a shape where its first item belongs.
func (q *Queue) reorder(s *Shape) {
	if q.line.Has(s) {
		q.line.Set(s)
	}
	if q.ready.Has(s) {
		q.ready.Set(s)
	}
	q.waitIndex.reorder(s)
}

// drop forgets a stand that is empty.
func (q *Queue) drop(at *bucket) {
	delete(q.buckets, at.space)
	q.close(at)
}

func (q *Queue) close(at *bucket) {
	at.open = false
	q.open = slices.DeleteFunc(q.open, func(other *bucket) bool { return other == at })
}

// Begin starts a round of trying at a time: what is ready is put in the order that
// backoff gives it now.
func (q *Queue) Begin(now time.Time) {
	q.waitIndex.Begin(now)
	if q.Policy != RoundRobin {
		return
	}
	for _, s := range slices.Clone(q.ready.All()) {
		if q.late(s) != s.late {
			q.makeReady(s)
		}
	}
}

// SetPolicy has another policy in force. What backoff came to under the one before
// does not count any more.
func (q *Queue) SetPolicy(policy Policy) {
	q.Policy = policy
	for _, s := range slices.Clone(q.ready.All()) {
		q.makeReady(s)
	}
	for _, s := range q.shapes {
		if s.Parked() {
			q.Retry(s)
		}
	}
}

// late reports whether the shape is in backoff.
func (q *Queue) late(s *Shape) bool {
	return q.Policy == RoundRobin && s.until != 0 && q.waitIndex.now.UnixNano() < s.until
}

func (q *Queue) makeReady(s *Shape) {
	s.late = q.late(s)
	q.ready.Set(s)
}

// Next is the item to try next, nil when none is worth trying. One in backoff goes
// only when no other has any use for the room.
func (q *Queue) Next() *Item {
	for i := len(q.open) - 1; i >= 0; i = min(i, len(q.open)) - 1 { // stands close meanwhile
		q.wakeFirst(q.open[i])
	}
	s, ok := q.ready.Top()
	if q.Policy == Block {
		s, ok = q.line.Top()
	}
	if !ok || !q.ready.Has(s) {
		return nil
	}
	return s.head()
}

// wakeFirst makes ready the first shape of a stand for which there is room, if it is
// before all that is ready. A stand without any is no longer open.
func (q *Queue) wakeFirst(at *bucket) {
	s := at.first(q.waitIndex.room(at.space), q.waitIndex.now.UnixNano())
	if s == nil {
		q.close(at)
		return
	}
	s.late = q.late(s)
	if ready, ok := q.ready.Top(); !ok || q.ready.less(s, ready) {
		q.waitIndex.leave(s)
		q.makeReady(s)
	}
}

// Front is the first item in line that has a chance; nil when there is none.
func (q *Queue) Front() *Item {
	if s, ok := q.line.Top(); ok {
		return s.head()
	}
	return nil
}

// Take takes the item out of line because it got its room.
func (q *Queue) Take(item *Item) {
	item.shape.backoff, item.shape.served = 0, q.waitIndex.now.UnixNano()
	q.Remove(item)
}

// Refuse parks a ready shape under what it lacks, or sets it aside when nothing
// that is given back could help it.
func (q *Queue) Refuse(s *Shape, r *quota.Refusal, now time.Time) {
	s.refuse(r, now)
	q.ready.Remove(s)
	if r.Final() {
		q.line.Remove(s)
		return
	}
	q.waitIndex.park(s)
}

// Retry makes a shape ready that was refused, whatever it lacks.
func (q *Queue) Retry(s *Shape) {
	q.waitIndex.leave(s)
	q.line.Set(s)
	q.makeReady(s)
}
