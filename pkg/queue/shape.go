package queue

import (
	"cmp"
	"slices"
	"time"
	"unique"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// Item is a waiting unit.
type Item struct {
	// Key is the namespace/name of the unit. Every order ends with it.
	Key string
	// Priority orders items. The highest comes first.
	Priority int32
	place    int32
	// Submitted orders items of the same priority, in microseconds since 1970.
	Submitted int64

	shape *Shape
}

// Older reports whether the item was submitted before the other one. Items that were submitted at the same time are
// ordered by name.
func (i *Item) Older(other *Item) bool {
	if i.Submitted != other.Submitted {
		return i.Submitted < other.Submitted
	}
	return i.Key < other.Key
}

// Shape returns the shape of the item; nil if the item is in no queue.
func (i *Item) Shape() *Shape { return i.shape }

// Shape is the set of items of one queue with the same demand and length.
type Shape struct {
	// Demand is the demand of each item.
	Demand quota.Demand
	// Length is the length of each item if it separates shapes; otherwise 0.
	Length Length
	// Shown is the cause that was last reported for all items; the zero Handle if none was. Only the owner of the queue
	// uses it.
	Shown unique.Handle[quota.Cause]

	key     string
	queue   *Queue
	items   Heap[*Item]
	refusal *quota.Refusal

	// backoffs are those of the items that were refused; nil if there are none.
	backoffs *backoffs
	// late is whether the shape was in backoff when it became ready.
	late bool
	// served is when one of the items was last admitted; 0 if none was.
	served int64

	possiblePlace, readyPlace int32
	// entry is parked under the Lack of the refusal. also is parked under whatever else may change the decision; few
	// shapes have it.
	entry bucketEntry
	also  *alsoParked
}

// alsoParked are the further entries of a parked shape.
type alsoParked struct{ entries []bucketEntry }

// backoffs are ordered by priority, the lowest first. A shape only has a pointer to them, because there may be a
// million shapes, and only some policies use backoffs.
type backoffs struct{ refused []refused }

// refused is the backoff of items with this priority. It also holds back items with lower priority, but none with
// higher priority.
type refused struct {
	priority int32
	// backoff is how long the last refusal keeps the items behind others, and until is its end in nanoseconds since 1970.
	backoff time.Duration
	until   int64
}

// Backoff is the backoff of refused shapes, with a policy that has one. It starts at Initial and doubles
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

// Items returns the items of the shape. The first is the next to be tried; the rest are in no particular order.
func (s *Shape) Items() []*Item { return s.items.All() }

// Parked reports whether the shape waits for what its refusal lacks.
func (s *Shape) Parked() bool { return s.entry.bucket != nil }

// worthTrying reports whether the shape is parked in a bucket that may have room for it.
func (s *Shape) worthTrying() bool {
	if !s.Parked() {
		return false
	}
	open := s.entry.bucket.open
	s.eachAlso(func(e *bucketEntry) { open = open || e.bucket.open })
	return open
}

// eachAlso calls do for the further entries of a parked shape.
func (s *Shape) eachAlso(do func(*bucketEntry)) {
	if s.also == nil {
		return
	}
	for i := range s.also.entries {
		do(&s.also.entries[i])
	}
}

// Refusal returns why the shape does not fit; nil if it has never been refused.
func (s *Shape) Refusal() *quota.Refusal { return s.refusal }

// Head returns the item that is tried next.
func (s *Shape) Head() *Item { return s.head() }

func (s *Shape) head() *Item {
	head, _ := s.items.Top()
	return head
}

// until returns when the backoff of the first item ends, in nanoseconds since 1970; 0 if neither it nor an item with
// higher priority was refused.
func (s *Shape) until() int64 {
	if s.backoffs == nil {
		return 0
	}
	priority := s.head().Priority
	for _, r := range s.backoffs.refused {
		if r.priority >= priority {
			return r.until
		}
	}
	return 0
}

// Refine replaces the refusal of a parked shape with a newer one. The shape stays parked where it is.
func (s *Shape) Refine(r *quota.Refusal) { s.refusal = r }

// refuse stores why the shape does not fit and starts the backoff of its first item.
func (s *Shape) refuse(r *quota.Refusal, now time.Time) {
	s.refusal = r
	if !s.queue.Policy.Backoff || s.served != 0 && s.served == now.UnixNano() {
		return // or one of its own items has just taken the room, and no other shape was tried in between
	}
	if s.backoffs == nil {
		s.backoffs = &backoffs{}
	}
	s.backoffs.add(s.head().Priority, s.queue.waitIndex.backoff, now)
}

// add starts or extends the backoff of a priority, and forgets those that have ended.
func (b *backoffs) add(priority int32, policy Backoff, now time.Time) {
	last := time.Duration(0)
	b.refused = slices.DeleteFunc(b.refused, func(r refused) bool {
		if r.priority == priority {
			last = r.backoff
		}
		return r.priority == priority || r.until <= now.UnixNano()
	})
	next := policy.after(last)
	at, _ := slices.BinarySearchFunc(b.refused, priority, func(r refused, p int32) int { return cmp.Compare(r.priority, p) })
	b.refused = slices.Insert(b.refused, at, refused{priority, next, now.Add(next).UnixNano()})
}

// admitted resets the backoff because an item was admitted.
func (s *Shape) admitted(now time.Time) {
	s.served = now.UnixNano()
	if s.backoffs != nil {
		for i := range s.backoffs.refused {
			s.backoffs.refused[i].backoff = 0
		}
	}
}

// Cause returns why the items of the shape wait now.
func (s *Shape) Cause() quota.Cause {
	if s.refusal == nil {
		return quota.Cause{}
	}
	return s.refusal.Cause()
}
