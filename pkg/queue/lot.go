package queue

import (
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Lot is where refused shapes of all queues are parked, by what they lack, so
// that freed room wakes only those that it could help.
type Lot struct {
	spaces map[space]*Heap[*Shape]
	parked int
}

type space struct {
	node     quota.NodeID
	resource resources.ID
}

// NewLot makes an empty lot.
func NewLot() *Lot { return &Lot{spaces: map[space]*Heap[*Shape]{}} }

// Len is the number of parked shapes.
func (l *Lot) Len() int { return l.parked }

func (l *Lot) park(s *Shape) {
	at := space{s.refusal.Lack.Node, s.refusal.Lack.Resource}
	shapes := l.spaces[at]
	if shapes == nil {
		shapes = NewHeap(needsLess, func(s *Shape) *int { return &s.lotPlace })
		l.spaces[at] = shapes
	}
	shapes.Set(s)
	l.parked++
}

func (l *Lot) leave(s *Shape) {
	if s.lotPlace == 0 {
		return
	}
	at := space{s.refusal.Lack.Node, s.refusal.Lack.Resource}
	shapes := l.spaces[at]
	shapes.Remove(s)
	if shapes.Len() == 0 {
		delete(l.spaces, at)
	}
	l.parked--
}

// Wake makes ready every shape parked for the resource at the node that asks for
// no more than the room there is, and tells which queues have something to try.
func (l *Lot) Wake(node quota.NodeID, resource resources.ID, room int64, woken func(*Queue)) {
	shapes := l.spaces[space{node, resource}]
	for shapes != nil {
		s, ok := shapes.Top()
		if !ok || s.refusal.Lack.Amount > room {
			return
		}
		l.leave(s)
		s.queue.ready.Set(s)
		woken(s.queue)
	}
}

// All parked shapes, in no order that a decision may depend on.
func (l *Lot) All() []*Shape {
	var all []*Shape
	for _, shapes := range l.spaces {
		all = append(all, shapes.All()...)
	}
	return all
}

func needsLess(a, b *Shape) bool {
	return a.refusal.Lack.Amount < b.refusal.Lack.Amount
}
