package queue

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// WaitIndex holds the parked shapes of all queues by what they lack, so that freed room wakes only the
// shapes that it could help. A shape may be parked in several spaces; room in any of them wakes it. Shapes of
// one queue wake one at a time in queue order, because the room that one of them takes is not
// available to the next.
type WaitIndex struct {
	room    func(quota.Space) int64
	backoff Backoff
	buckets map[quota.Space]*Heap[*bucket]
	parked  int
	// bounds are the numbers of spaces by their bound.
	bounds [quota.Bounds]int
	// now is the time of the current round of trying.
	now     time.Time
	weights uint64
	// opened is scratch space of Wake.
	opened []*bucket
}

// NewWaitIndex returns an empty wait index. room returns the room in a space.
func NewWaitIndex(room func(quota.Space) int64, backoff Backoff) *WaitIndex {
	return &WaitIndex{room: room, backoff: backoff, buckets: map[quota.Space]*Heap[*bucket]{}}
}

// Awaits reports whether a shape is parked in a space of the bound.
func (l *WaitIndex) Awaits(b quota.Bound) bool { return l.bounds[b] > 0 }

// Begin starts a round of trying and sets the time for backoff.
func (l *WaitIndex) Begin(now time.Time) { l.now = now }

// Len returns the number of parked shapes.
func (l *WaitIndex) Len() int { return l.parked }

func (l *WaitIndex) park(s *Shape) {
	l.put(&s.entry, s, s.refusal.Lack)
	if lacks := s.refusal.Also; lacks != nil {
		s.also = &alsoParked{entries: make([]bucketEntry, len(lacks))}
		for i, lack := range lacks {
			l.put(&s.also.entries[i], s, lack)
		}
	}
	l.parked++
}

func (l *WaitIndex) put(p *bucketEntry, s *Shape, lack quota.Lack) {
	amount := lack.Amount
	if room := l.room(lack.Space); amount <= room {
		// A backend that refuses a demand for which it has room would be tried forever.
		amount = room + min(1, math.MaxInt64-room)
	}
	at := s.queue.buckets[lack.Space]
	if at == nil {
		at = &bucket{queue: s.queue, space: lack.Space}
		s.queue.buckets[lack.Space] = at
	}
	at.put(p, s, amount, l.nextWeight())
	l.placed(at)
}

// nextWeight returns a pseudo-random weight. The sequence is the same in each run.
func (l *WaitIndex) nextWeight() uint64 {
	l.weights++
	return bits.Reverse64(l.weights * 0x9e3779b97f4a7c15)
}

// placed moves a bucket to its position among the buckets of its space.
func (l *WaitIndex) placed(at *bucket) {
	buckets := l.buckets[at.space]
	if buckets == nil {
		buckets = NewHeap(func(a, b *bucket) bool { return a.least() < b.least() }, func(s *bucket) *int32 { return &s.place })
		l.buckets[at.space] = buckets
		l.bounds[at.space.Bound]++
	}
	buckets.Set(at)
}

// leave removes the shape from the wait index.
func (l *WaitIndex) leave(s *Shape) {
	if !s.Parked() {
		return
	}
	l.remove(&s.entry)
	s.eachAlso(l.remove)
	s.also = nil
	l.parked--
}

func (l *WaitIndex) remove(p *bucketEntry) {
	at := p.bucket
	buckets := l.buckets[at.space]
	if !at.hasOther(p) { // the order of the heap depends on the entries
		buckets.Remove(at)
		at.remove(p)
		at.queue.drop(at)
		if buckets.Len() == 0 {
			delete(l.buckets, at.space)
			l.bounds[at.space.Bound]--
		}
		return
	}
	at.remove(p)
	buckets.Set(at)
}

// reorder moves a parked shape to the position of its first item.
func (l *WaitIndex) reorder(s *Shape) {
	if !s.Parked() || s.entry.head == s.head() {
		return
	}
	move := func(p *bucketEntry) {
		at, amount, weight := p.bucket, p.amount, p.weight
		at.remove(p)
		at.put(p, s, amount, weight)
	}
	move(&s.entry)
	s.eachAlso(move)
}

// Wake processes that a space may have more room than before. It calls woken for the queues that
// may have something to try there.
func (l *WaitIndex) Wake(space quota.Space, woken func(*Queue)) {
	buckets := l.buckets[space]
	if buckets == nil {
		return
	}
	room := l.room(space)
	l.opened = l.opened[:0]
	buckets.walk(func(at *bucket) bool {
		if at.least() > room {
			return false
		}
		l.opened = append(l.opened, at)
		return true
	})
	for _, at := range l.opened {
		if !at.open {
			at.open = true
			at.queue.open = append(at.queue.open, at)
		}
	}
	opened := slices.Clone(l.opened)
	clear(l.opened) // the array must not keep buckets that are gone
	for _, at := range opened {
		woken(at.queue)
	}
}

// All returns the parked shapes except those that are known to be worth trying. No decision may
// depend on the order.
func (l *WaitIndex) All() []*Shape {
	var all []*Shape
	for _, buckets := range l.buckets {
		for _, at := range buckets.All() {
			each := func(p *bucketEntry) {
				if p == &p.shape.entry && !p.shape.worthTrying() {
					all = append(all, p.shape)
				}
			}
			at.root.each(each)
			at.late.each(each)
		}
	}
	return all
}
