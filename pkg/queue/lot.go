package queue

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// Lot is where refused shapes of all queues are parked, by what they lack, so
// that freed room wakes only those that it could help. A shape may stand in two
// spaces: room in either wakes it.
type Lot struct {
	spaces map[quota.Space]*Heap[*parking]
	parked int
	// now is the time of the round of trying.
	now time.Time
}

// parking is a shape's place in one space; the zero parking is in none.
type parking struct {
	shape *Shape
	lack  quota.Lack
	place int
}

// NewLot makes an empty lot.
func NewLot() *Lot { return &Lot{spaces: map[quota.Space]*Heap[*parking]{}} }

// Begin starts a round of trying at a time: that at which backoff is judged.
func (l *Lot) Begin(now time.Time) { l.now = now }

// Len is the number of parked shapes.
func (l *Lot) Len() int { return l.parked }

func (l *Lot) park(s *Shape) {
	l.put(&s.parkings[0], s, s.refusal.Lack)
	if s.refusal.Also != nil {
		l.put(&s.parkings[1], s, *s.refusal.Also)
	}
	l.parked++
}

func (l *Lot) put(p *parking, s *Shape, lack quota.Lack) {
	p.shape, p.lack = s, lack
	parkings := l.spaces[lack.Space]
	if parkings == nil {
		parkings = NewHeap(needsLess, func(p *parking) *int { return &p.place })
		l.spaces[lack.Space] = parkings
	}
	parkings.Set(p)
}

func (l *Lot) leave(s *Shape) {
	if !s.Parked() {
		return
	}
	for i := range s.parkings {
		p := &s.parkings[i]
		if p.place == 0 {
			continue
		}
		parkings := l.spaces[p.lack.Space]
		parkings.Remove(p)
		if parkings.Len() == 0 {
			delete(l.spaces, p.lack.Space)
		}
	}
	l.parked--
}

// Wake makes ready every shape parked in the space that asks for no more than the
// room there is, and tells which queues have something to try.
func (l *Lot) Wake(space quota.Space, room int64, woken func(*Queue)) {
	parkings := l.spaces[space]
	for parkings != nil {
		p, ok := parkings.Top()
		if !ok || p.lack.Amount > room {
			return
		}
		s := p.shape
		l.leave(s)
		s.queue.makeReady(s)
		woken(s.queue)
	}
}

// All parked shapes, in no order that a decision may depend on.
func (l *Lot) All() []*Shape {
	var all []*Shape
	for _, parkings := range l.spaces {
		for _, p := range parkings.All() {
			if p == &p.shape.parkings[0] {
				all = append(all, p.shape)
			}
		}
	}
	return all
}

func needsLess(a, b *parking) bool {
	return a.lack.Amount < b.lack.Amount
}
