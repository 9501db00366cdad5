package queue

import (
	"time"
	"unique"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// Item is a waiting unit.
type Item struct {
	// Key is the namespace/name of the unit. Every order ends with it.
	Key string
	// Priority orders items. The greater comes first.
	Priority int32
	// Submitted orders items of the same priority, in microseconds since 1970.
	Submitted int64

	shape *Shape
	place int
}

// Before reports whether the item is before the other in the order of a queue.
func (i *Item) Before(other *Item) bool {
	if i.Priority != other.Priority {
		return i.Priority > other.Priority
	}
	return i.Older(other)
}

// Older reports whether the item was submitted before the other.
func (i *Item) Older(other *Item) bool {
	if i.Submitted != other.Submitted {
		return i.Submitted < other.Submitted
	}
	return i.Key < other.Key
}

// Shape returns the shape of the item; nil if the item is in no queue.
func (i *Item) Shape() *Shape { return i.shape }

// Shape is the set of items of one queue with the same demand.
type Shape struct {
	// Demand is the demand of each item.
	Demand quota.Demand
	// Shown is the cause that was last reported for all items; the zero Handle if none was. It is for
	// use by the owner of the queue.
	Shown unique.Handle[quota.Cause]

	key     string
	queue   *Queue
	items   Heap[*Item]
	refusal *quota.Refusal

	// backoff is how long the last refusal keeps the shape behind others, and until is its end in
	// nanoseconds since 1970; 0 if the shape was never refused.
	backoff time.Duration
	until   int64
	late    bool
	// served is when one of the items was last admitted; 0 if none was.
	served int64

	possiblePlace, readyPlace int
	// entry is under the Lack of the refusal. also is under its second Lack, which few have.
	entry bucketEntry
	also  *bucketEntry
}

// Backoff is the backoff of refused shapes with policy RoundRobin. It starts at Initial and doubles
// with each refusal up to Max.
type Backoff struct {
	Initial, Max time.Duration
}

// DefaultBackoff returns the backoff that applies unless another one is set.
func DefaultBackoff() Backoff { return Backoff{Initial: time.Second, Max: 20 * time.Second} }

// after returns the backoff that follows the last one, which is 0 if there was none.
func (b Backoff) after(last time.Duration) time.Duration {
	return min(max(2*last, b.Initial), b.Max)
}

// Key identifies the shape within its queue.
func (s *Shape) Key() string { return s.key }

// Queue returns the queue of the shape.
func (s *Shape) Queue() *Queue { return s.queue }

// Len returns the number of items.
func (s *Shape) Len() int { return s.items.Len() }

// Items returns the items of the shape. The first is the next to be tried; the rest are in no order.
func (s *Shape) Items() []*Item { return s.items.All() }

// Parked reports whether the shape waits for what its refusal lacks.
func (s *Shape) Parked() bool { return s.entry.bucket != nil }

// worthTrying reports whether the shape is parked in a bucket that may have room for it.
func (s *Shape) worthTrying() bool {
	return s.Parked() && (s.entry.bucket.open || s.also != nil && s.also.bucket.open)
}

// Refusal returns why the shape does not fit; nil if it has never been refused.
func (s *Shape) Refusal() *quota.Refusal { return s.refusal }

func (s *Shape) head() *Item {
	head, _ := s.items.Top()
	return head
}

// refuse stores why the shape does not fit and starts its backoff.
func (s *Shape) refuse(r *quota.Refusal, now time.Time) {
	s.refusal = r
	if s.served != 0 && s.served == now.UnixNano() {
		return // one of its own items has just taken the room, and no other shape was tried in between
	}
	s.backoff = s.queue.waitIndex.backoff.after(s.backoff)
	s.until = now.Add(s.backoff).UnixNano()
}

// Cause returns why the items of the shape wait now.
func (s *Shape) Cause() quota.Cause {
	if s.refusal == nil {
		return quota.Cause{}
	}
	return s.refusal.Cause()
}
