package queue

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// Item is a waiting unit.
type Item struct {
	// Key is the unit's namespace/name, the last word of every order.
	Key string
	// Priority orders items, the greater first.
	Priority int32
	// Submitted orders items of one priority: microseconds since 1970.
	Submitted int64

	shape *Shape
	place int
}

// Before is the order of a queue.
func (i *Item) Before(other *Item) bool {
	if i.Priority != other.Priority {
		return i.Priority > other.Priority
	}
	return i.Older(other)
}

// Older is the order of submission.
func (i *Item) Older(other *Item) bool {
	if i.Submitted != other.Submitted {
		return i.Submitted < other.Submitted
	}
	return i.Key < other.Key
}

// Shape that the item is in; nil when it is in no queue.
func (i *Item) Shape() *Shape { return i.shape }

// Shape is the set of items of one queue that demand the same.
type Shape struct {
	// Demand of each item.
	Demand quota.Demand
	// Told is the cause that the owner has last had reported for all items, nil for none:
	// for the owner's use.
	Shown *quota.Cause

	key     string
	queue   *Queue
	items   Heap[*Item]
	refusal *quota.Refusal

	// backoff is how long the last refusal keeps the shape behind others: until then,
	// in nanoseconds since 1970, 0 when it was never refused.
	backoff time.Duration
	until   int64
	late    bool
	// served is when one of the items last got its room, 0 for never.
	served int64

	linePlace, readyPlace int
	// parking is by what the refusal lacks, also by what it also lacks; few have that.
	entry bucketEntry
	also  *bucketEntry
}

// Backoff of a refused shape in policy RoundRobin: the first, doubling with each
// refusal up to the greatest.
type Backoff struct {
	Initial, Max time.Duration
}

// DefaultBackoff is in force where nobody sets another.
func DefaultBackoff() Backoff { return Backoff{Initial: time.Second, Max: 20 * time.Second} }

// after is the backoff that follows one; 0 follows none.
func (b Backoff) after(last time.Duration) time.Duration {
	return min(max(2*last, b.Initial), b.Max)
}

// Key tells shapes of one queue apart.
func (s *Shape) Key() string { return s.key }

// Queue that the shape is in.
func (s *Shape) Queue() *Queue { return s.queue }

// Len is the number of items.
func (s *Shape) Len() int { return s.items.Len() }

// Items of the shape, the first the next in line, the rest in no order.
func (s *Shape) Items() []*Item { return s.items.All() }

// Parked reports whether the shape waits for what its refusal lacks.
func (s *Shape) Parked() bool { return s.entry.bucket != nil }

// worthTrying reports whether the shape is parked where there may be room for it.
func (s *Shape) worthTrying() bool {
	return s.Parked() && (s.entry.bucket.open || s.also != nil && s.also.bucket.open)
}

// Refusal is why the shape has no room; nil when it was not tried since it
// became ready.
func (s *Shape) Refusal() *quota.Refusal { return s.refusal }

func (s *Shape) head() *Item {
	head, _ := s.items.Top()
	return head
}

// refuse notes why the shape has no room, and sends it to the back for a while.
func (s *Shape) refuse(r *quota.Refusal, now time.Time) {
	s.refusal = r
	if s.served != 0 && s.served == now.UnixNano() {
		return // one of its own has just taken the room, and others were not tried at all
	}
	s.backoff = s.queue.waitIndex.backoff.after(s.backoff)
	s.until = now.Add(s.backoff).UnixNano()
}

// Cause of the wait that the shape's items are in now.
func (s *Shape) Cause() quota.Cause {
	if s.refusal == nil {
		return quota.Cause{}
	}
	return s.refusal.Cause()
}
