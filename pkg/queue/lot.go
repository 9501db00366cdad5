package queue

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// Lot is where refused shapes of all queues are parked, by what they lack, so that
// freed room wakes only those that it could help. A shape may stand in two spaces:
// room in either wakes it. Shapes of one queue wake one by one, the first in line
// first, for the room that one takes is none for those behind it.
type Lot struct {
	room    func(quota.Space) int64
	backoff Backoff
	spaces  map[quota.Space]*Heap[*stand]
	parked  int
	// now is the time of the round of trying.
	now   time.Time
	draws uint64
	// opened are stands that Wake has found.
	opened []*stand
}

// NewLot makes an empty lot. Room tells how much room there is in a space.
func NewLot(room func(quota.Space) int64, backoff Backoff) *Lot {
	return &Lot{room: room, backoff: backoff, spaces: map[quota.Space]*Heap[*stand]{}}
}

// Begin starts a round of trying at a time: that at which backoff is judged.
func (l *Lot) Begin(now time.Time) { l.now = now }

// Len is the number of parked shapes.
func (l *Lot) Len() int { return l.parked }

func (l *Lot) park(s *Shape) {
	l.put(&s.parking, s, s.refusal.Lack)
	if s.refusal.Also != nil {
		s.also = &parking{}
		l.put(s.also, s, *s.refusal.Also)
	}
	l.parked++
}

func (l *Lot) put(p *parking, s *Shape, lack quota.Lack) {
	amount := lack.Amount
	if room := l.room(lack.Space); amount <= room {
		// A backend that refuses what it has room for would be asked for ever.
		amount = room + min(1, math.MaxInt64-room)
	}
	at := s.queue.stands[lack.Space]
	if at == nil {
		at = &stand{queue: s.queue, space: lack.Space}
		s.queue.stands[lack.Space] = at
	}
	at.put(p, s, amount, l.draw())
	l.placed(at)
}

// draw is a number of no meaning, the same ones in each run.
func (l *Lot) draw() uint64 {
	l.draws++
	return bits.Reverse64(l.draws * 0x9e3779b97f4a7c15)
}

// placed puts a stand where it belongs among those of its space.
func (l *Lot) placed(at *stand) {
	stands := l.spaces[at.space]
	if stands == nil {
		stands = NewHeap(func(a, b *stand) bool { return a.least() < b.least() }, func(s *stand) *int { return &s.place })
		l.spaces[at.space] = stands
	}
	stands.Set(at)
}

// leave takes the shape out of the spaces that it stands in.
func (l *Lot) leave(s *Shape) {
	if !s.Parked() {
		return
	}
	l.takeOut(&s.parking)
	if s.also != nil {
		l.takeOut(s.also)
		s.also = nil
	}
	l.parked--
}

func (l *Lot) takeOut(p *parking) {
	at := p.stand
	stands := l.spaces[at.space]
	if !at.hasOther(p) { // the order looks at what stands there
		stands.Remove(at)
		at.remove(p)
		at.queue.drop(at)
		if stands.Len() == 0 {
			delete(l.spaces, at.space)
		}
		return
	}
	at.remove(p)
	stands.Set(at)
}

// reorder puts a parked shape where its first item belongs.
func (l *Lot) reorder(s *Shape) {
	if !s.Parked() || s.parking.head == s.head() {
		return
	}
	for _, p := range [...]*parking{&s.parking, s.also} {
		if p != nil {
			at, amount, weight := p.stand, p.amount, p.weight
			at.remove(p)
			at.put(p, s, amount, weight)
		}
	}
}

// Wake takes in that there may be more room in a space than before, and tells which
// queues may have something to try there.
func (l *Lot) Wake(space quota.Space, woken func(*Queue)) {
	stands := l.spaces[space]
	if stands == nil {
		return
	}
	room := l.room(space)
	l.opened = l.opened[:0]
	stands.walk(func(at *stand) bool {
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
func (l *Lot) All() []*Shape {
	var all []*Shape
	for _, stands := range l.spaces {
		for _, at := range stands.All() {
			each := func(p *parking) {
				if p == &p.shape.parking && !p.shape.worthTrying() {
					all = append(all, p.shape)
				}
			}
			at.root.each(each)
			at.late.each(each)
		}
	}
	return all
}
