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
	// bounds counts the spaces by bound.
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
func (w *WaitIndex) Awaits(b quota.Bound) bool { return w.bounds[b] > 0 }

// Begin starts a round of trying and sets the time for backoff.
func (w *WaitIndex) Begin(now time.Time) { w.now = now }

// Len returns the number of parked shapes.
func (w *WaitIndex) Len() int { return w.parked }

func (w *WaitIndex) park(s *Shape) {
	w.put(&s.entry, s, s.refusal.Lack)
	if lacks := s.refusal.Also; lacks != nil {
		s.also = &alsoParked{entries: make([]bucketEntry, len(lacks))}
		for i, lack := range lacks {
			w.put(&s.also.entries[i], s, lack)
		}
	}
	w.parked++
}

func (w *WaitIndex) put(e *bucketEntry, s *Shape, lack quota.Lack) {
	amount := lack.Amount
	if room := w.room(lack.Space); amount <= room {
		// Otherwise, a demand that the backend refuses although it has room would be tried forever.
		amount = room + min(1, math.MaxInt64-room)
	}
	at := s.queue.buckets[lack.Space]
	if at == nil {
		at = &bucket{queue: s.queue, space: lack.Space}
		s.queue.buckets[lack.Space] = at
	}
	at.put(e, s, amount, w.nextWeight())
	w.placed(at)
}

// nextWeight returns a pseudo-random weight. The sequence is the same in each run.
func (w *WaitIndex) nextWeight() uint64 {
	w.weights++
	return bits.Reverse64(w.weights * 0x9e3779b97f4a7c15)
}

// placed moves a bucket to its position among the buckets of its space.
func (w *WaitIndex) placed(at *bucket) {
	buckets := w.buckets[at.space]
	if buckets == nil {
		buckets = NewHeap(func(a, b *bucket) bool { return a.least() < b.least() }, func(b *bucket) *int32 { return &b.place })
		w.buckets[at.space] = buckets
		w.bounds[at.space.Bound]++
	}
	buckets.Set(at)
}

// leave removes the shape from the wait index.
func (w *WaitIndex) leave(s *Shape) {
	if !s.Parked() {
		return
	}
	w.remove(&s.entry)
	s.eachAlso(w.remove)
	s.also = nil
	w.parked--
}

func (w *WaitIndex) remove(e *bucketEntry) {
	at := e.bucket
	buckets := w.buckets[at.space]
	if !at.hasOther(e) { // the order of the heap depends on the entries
		buckets.Remove(at)
		at.remove(e)
		at.queue.drop(at)
		if buckets.Len() == 0 {
			delete(w.buckets, at.space)
			w.bounds[at.space.Bound]--
		}
		return
	}
	at.remove(e)
	buckets.Set(at)
}

// reorder moves a parked shape to the position of its first item.
func (w *WaitIndex) reorder(s *Shape) {
	if !s.Parked() || s.entry.head == s.head() {
		return
	}
	move := func(e *bucketEntry) {
		at, amount, weight := e.bucket, e.amount, e.weight
		at.remove(e)
		at.put(e, s, amount, weight)
	}
	move(&s.entry)
	s.eachAlso(move)
}

// Wake processes a space that may have gained room. It calls woken for the queues that may have something to try there.
func (w *WaitIndex) Wake(space quota.Space, woken func(*Queue)) {
	buckets := w.buckets[space]
	if buckets == nil {
		return
	}
	room := w.room(space)
	w.opened = w.opened[:0]
	buckets.walk(func(at *bucket) bool {
		if at.least() > room {
			return false
		}
		w.opened = append(w.opened, at)
		return true
	})
	for _, at := range w.opened {
		if !at.open {
			at.open = true
			at.queue.open = append(at.queue.open, at)
		}
	}
	opened := slices.Clone(w.opened)
	clear(w.opened) // so that the array does not keep removed buckets
	for _, at := range opened {
		woken(at.queue)
	}
}

// All returns the parked shapes except those that are known to be worth trying. No decision may
// depend on the order.
func (w *WaitIndex) All() []*Shape {
	var all []*Shape
	for _, buckets := range w.buckets {
		for _, at := range buckets.All() {
			each := func(e *bucketEntry) {
				if e == &e.shape.entry && !e.shape.worthTrying() {
					all = append(all, e.shape)
				}
			}
			at.root.each(each)
			at.late.each(each)
		}
	}
	return all
}
