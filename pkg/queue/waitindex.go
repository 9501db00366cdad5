package queue

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// WaitIndex is where refused shapes of all queues are parked, by what they lack, so that
// freed room wakes only those that it could help. A shape may stand in two spaces:
// room in either wakes it. Shapes of one queue wake one by one, the first in line
// first, for the room that one takes is none for those behind it.
type WaitIndex struct {
	room    func(quota.Space) int64
	backoff Backoff
	buckets map[quota.Space]*Heap[*bucket]
	parked  int
	// now is the time of the round of trying.
	now     time.Time
	weights uint64
	// opened are stands that Wake has found.
	opened []*bucket
}

// NewWaitIndex makes an empty wait index. Room reports how much room there is in a space.
func NewWaitIndex(room func(quota.Space) int64, backoff Backoff) *WaitIndex {
	return &WaitIndex{room: room, backoff: backoff, buckets: map[quota.Space]*Heap[*bucket]{}}
}

// Begin starts a round of trying at a time: that at which backoff is judged.
func (l *WaitIndex) Begin(now time.Time) { l.now = now }

// Len is the number of parked shapes.
func (l *WaitIndex) Len() int { return l.parked }

func (l *WaitIndex) park(s *Shape) {
	l.put(&s.entry, s, s.refusal.Lack)
	if s.refusal.Also != nil {
		s.also = &bucketEntry{}
		l.put(s.also, s, *s.refusal.Also)
	}
	l.parked++
}

func (l *WaitIndex) put(p *bucketEntry, s *Shape, lack quota.Lack) {
	amount := lack.Amount
	if room := l.room(lack.Space); amount <= room {
		// A backend that refuses what it has room for would be asked for ever.
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

// draw is a number of no meaning, the same ones in each run.
func (l *WaitIndex) nextWeight() uint64 {
	l.weights++
	return bits.Reverse64(l.weights * 0x9e3779b97f4a7c15)
}

// placed puts a stand where it belongs among those of its space.
func (l *WaitIndex) placed(at *bucket) {
	stands := l.buckets[at.space]
	if stands == nil {
		stands = NewHeap(func(a, b *bucket) bool { return a.least() < b.least() }, func(s *bucket) *int { return &s.place })
		l.buckets[at.space] = stands
	}
	stands.Set(at)
}

// leave takes the shape out of the spaces that it stands in.
func (l *WaitIndex) leave(s *Shape) {
	if !s.Parked() {
		return
	}
	l.remove(&s.entry)
	if s.also != nil {
		l.remove(s.also)
		s.also = nil
	}
	l.parked--
}

func (l *WaitIndex) remove(p *bucketEntry) {
	at := p.bucket
	stands := l.buckets[at.space]
	if !at.hasOther(p) { // the order looks at what stands there
		stands.Remove(at)
		at.remove(p)
		at.queue.drop(at)
		if stands.Len() == 0 {
			delete(l.buckets, at.space)
		}
		return
	}
	at.remove(p)
	stands.Set(at)
}

// reorder puts a parked shape where its first item belongs.
func (l *WaitIndex) reorder(s *Shape) {
	if !s.Parked() || s.entry.head == s.head() {
		return
	}
	for _, p := range [...]*bucketEntry{&s.entry, s.also} {
		if p != nil {
			at, amount, weight := p.bucket, p.amount, p.weight
			at.remove(p)
			at.put(p, s, amount, weight)
		}
	}
}

// Wake takes in that there may be more room in a space than before, and reports which
// queues may have something to try there.
func (l *WaitIndex) Wake(space quota.Space, woken func(*Queue)) {
	stands := l.buckets[space]
	if stands == nil {
		return
	}
	room := l.room(space)
	l.opened = l.opened[:0]
	stands.walk(func(at *bucket) bool {
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
	for _, at := range slices.Clone(l.opened) {
		woken(at.queue)
	}
}

// All parked shapes but those that are worth trying and have others before them, in
// no order that a decision may depend on.
func (l *WaitIndex) All() []*Shape {
	var all []*Shape
	for _, stands := range l.buckets {
		for _, at := range stands.All() {
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
