package queue

import (
	"slices"
	"strconv"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// Queue holds the waiting items of one quota group.
type Queue struct {
	// Group is the quota group of the items.
	Group quota.Group
	// Policy is the policy in force. SetPolicy changes it.
	Policy *Policy

	waitIndex *WaitIndex
	shapes    map[string]*Shape
	ages      ages
	// possible holds the possible shapes, ready and parked, by their first items.
	possible *Heap[*Shape]
	// ready holds the shapes that are worth trying.
	ready *Heap[*Shape]
	// buckets are where shapes of the queue are parked. Those in open may have shapes that are
	// worth trying.
	buckets map[quota.Space]*bucket
	open    []*bucket
	// before is Before. It is stored because each method value would be an allocation.
	before func(a, b *Item) bool
}

// New returns an empty queue whose refused shapes are parked in the wait index.
func New(group quota.Group, policy *Policy, index *WaitIndex) *Queue {
	q := &Queue{
		Group:     group,
		Policy:    policy,
		waitIndex: index,
		shapes:    map[string]*Shape{},
		buckets:   map[quota.Space]*bucket{},
	}
	q.before = q.Before
	q.possible = NewHeap(func(a, b *Shape) bool { return q.Before(a.head(), b.head()) },
		func(s *Shape) *int32 { return &s.possiblePlace })
	q.ready = NewHeap(func(a, b *Shape) bool {
		if a.late != b.late {
			return b.late
		}
		return q.Before(a.head(), b.head())
	}, func(s *Shape) *int32 { return &s.readyPlace })
	return q
}

// Before reports whether an item comes before another in the order of the queue.
func (q *Queue) Before(a, b *Item) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return q.Policy.Before(a, b)
}

// Shapes calls do for every shape. No decision may depend on the order.
func (q *Queue) Shapes(do func(*Shape)) {
	for _, s := range q.shapes {
		do(s)
	}
}

// Push adds an item to the queue. A shape that is new to the queue is ready.
func (q *Queue) Push(item *Item, demand quota.Demand, length Length) *Shape {
	key := demand.Key()
	if length > 0 {
		key += "/" + strconv.Itoa(int(length))
	}
	return q.push(item, demand, length, key)
}

// PushAlone adds an item in a shape of its own, which is ready.
func (q *Queue) PushAlone(item *Item, demand quota.Demand, length Length) *Shape {
	return q.push(item, demand, length, demand.Key()+"/"+item.Key)
}

func (q *Queue) push(item *Item, demand quota.Demand, length Length, key string) *Shape {
	s := q.shapes[key]
	if s == nil {
		s = &Shape{Demand: demand, Length: length, key: key, queue: q,
			items: *NewHeap(q.before, func(i *Item) *int32 { return &i.place })}
		q.shapes[key] = s
	}
	isNew := s.Len() == 0
	item.shape = s
	s.items.Set(item)
	q.ages.add(item.Submitted)
	if isNew {
		q.possible.Set(s)
		q.makeReady(s)
	} else {
		q.reorder(s)
	}
	return s
}

// Remove removes an item from the queue.
func (q *Queue) Remove(item *Item) {
	s := item.shape
	defer func() { item.shape = nil }() // its place depends on its shape
	q.ages.remove(item.Submitted)
	if s.Len() > 1 {
		s.items.Remove(item)
		q.reorder(s)
		return
	}
	// The heaps are ordered by the first item, so the shape leaves them before its item.
	q.waitIndex.leave(s)
	q.ready.Remove(s)
	q.possible.Remove(s)
	s.items.Remove(item)
	delete(q.shapes, s.key)
}

// reorder moves a shape to the position of its first item.
func (q *Queue) reorder(s *Shape) {
	if q.possible.Has(s) {
		q.possible.Set(s)
	}
	if q.ready.Has(s) {
		q.makeReady(s) // the backoff is that of its first item
	}
	q.waitIndex.reorder(s)
}

// drop removes an empty bucket.
func (q *Queue) drop(at *bucket) {
	delete(q.buckets, at.space)
	q.close(at)
}

func (q *Queue) close(at *bucket) {
	at.open = false
	q.open = slices.DeleteFunc(q.open, func(other *bucket) bool { return other == at })
}

// Begin starts a round of trying. It orders the ready shapes by the backoff at that time.
func (q *Queue) Begin(now time.Time) {
	q.waitIndex.Begin(now)
	if !q.Policy.Backoff {
		return
	}
	for _, s := range slices.Clone(q.ready.All()) {
		if q.late(s) != s.late {
			q.makeReady(s)
		}
	}
}

// SetPolicy changes the policy. Backoff from the previous policy no longer counts.
func (q *Queue) SetPolicy(policy *Policy) {
	// Shapes must leave the heaps before their order changes.
	var retried []*Shape
	for _, s := range q.shapes {
		if !q.possible.Has(s) {
			continue
		}
		retried = append(retried, s)
		q.waitIndex.leave(s)
		q.ready.Remove(s)
		q.possible.Remove(s)
	}
	q.Policy = policy
	for _, s := range q.shapes {
		s.items.sort()
	}
	for _, s := range retried {
		q.possible.Set(s)
		q.makeReady(s)
	}
}

// late reports whether the shape is in backoff.
func (q *Queue) late(s *Shape) bool {
	return q.Policy.Backoff && s.backoffs != nil && q.waitIndex.now.UnixNano() < s.until()
}

func (q *Queue) makeReady(s *Shape) {
	s.late = q.late(s)
	q.ready.Set(s)
}

// Next returns the item to try next; nil if none is worth trying. An item in backoff is tried only
// if no other item can use the room.
func (q *Queue) Next() *Item {
	for i := len(q.open) - 1; i >= 0; i = min(i, len(q.open)) - 1 { // wakeFirst can close buckets
		q.wakeFirst(q.open[i])
	}
	s, ok := q.ready.Top()
	if q.Policy.FrontOnly {
		s, ok = q.possible.Top()
	}
	if !ok || !q.ready.Has(s) {
		return nil
	}
	return s.head()
}

// wakeFirst finds the first shape of a bucket that there is room for, and makes it ready if it comes before all ready
// shapes. It closes the bucket if there is room for none.
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

// Front returns the first item that is not impossible; nil if there is none.
func (q *Queue) Front() *Item {
	if s, ok := q.possible.Top(); ok {
		return s.head()
	}
	return nil
}

// InOrder calls visit with the first items of the shapes that are not impossible, in order, until visit returns false.
func (q *Queue) InOrder(visit func(*Item) bool) {
	q.possible.inOrder(func(s *Shape) bool { return visit(s.head()) })
}

// Oldest returns the item that was submitted first, of those that are not impossible and that accepts allows; nil if
// there is none. It takes time proportional to the number of items.
func (q *Queue) Oldest(accepts func(*Item) bool) (oldest *Item) {
	for _, s := range q.possible.All() {
		for _, item := range s.items.All() {
			if (oldest == nil || item.Older(oldest)) && accepts(item) {
				oldest = item
			}
		}
	}
	return oldest
}

// First returns the first items that are not impossible, in order, at most this many.
func (q *Queue) First(most int) []*Item {
	var first []*Item
	isIn := func(item *Item) bool { return len(first) < most || q.Before(item, first[most-1]) }
	q.possible.inOrder(func(s *Shape) bool {
		if !isIn(s.head()) {
			return false // nor are the items of later shapes
		}
		s.items.inOrder(func(item *Item) bool {
			if !isIn(item) {
				return false
			}
			at, _ := slices.BinarySearchFunc(first, item, func(a, b *Item) int {
				if q.Before(a, b) {
					return -1
				}
				return 1
			})
			first = slices.Insert(first, at, item)
			first = first[:min(len(first), most)]
			return true
		})
		return true
	})
	return first
}

// Take removes the item from the queue because it was admitted.
func (q *Queue) Take(item *Item) {
	item.shape.admitted(q.waitIndex.now)
	q.Remove(item)
}

// Refuse parks a ready shape under what it lacks, or sets it aside if it is impossible.
func (q *Queue) Refuse(s *Shape, r *quota.Refusal, now time.Time) {
	s.refuse(r, now)
	q.ready.Remove(s)
	if r.Final() {
		q.possible.Remove(s)
		return
	}
	q.waitIndex.park(s)
}

// Retry makes a refused shape ready, no matter what it lacks.
func (q *Queue) Retry(s *Shape) {
	q.waitIndex.leave(s)
	q.possible.Set(s)
	q.makeReady(s)
}
