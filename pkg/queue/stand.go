package queue

import (
	"math"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// stand holds the shapes of one queue that are parked in one space, so that the first
// in line that asks for no more than the room there is found without looking at the
// others: a treap in the order of the queue, in which each knows the least that is
// asked for below it.
type stand struct {
	queue *Queue
	space quota.Space
	root  *parking
	// open: there may be room for some of the shapes.
	open bool
	// place in the heap of the space.
	place int
}

// parking is a shape's place in a stand; the zero parking is in none.
type parking struct {
	shape *Shape
	stand *stand
	// head is the item by which the shape stands where it does.
	head   *Item
	amount int64

	// weight keeps the treap in balance: a parking's is above those below it.
	weight      uint64
	left, right *parking
	// least and soonest are those of amount and of the shape's until, of this one and all below.
	least, soonest int64
}

// least is what has to be free before any of the shapes is worth trying.
func (s *stand) least() int64 { return s.root.least }

func (s *stand) put(p *parking, shape *Shape, amount int64, weight uint64) {
	*p = parking{shape: shape, stand: s, head: shape.head(), amount: amount, weight: weight}
	p.sum()
	s.root = s.root.with(p)
}

func (s *stand) remove(p *parking) {
	s.root = s.root.without(p)
	*p = parking{}
}

// first is the first shape in line that asks for no more than the room, one that is
// not in backoff before others; nil when there is none.
func (s *stand) first(room, now int64) *Shape {
	// What asks for the largest number there is never fits.
	room = min(room, math.MaxInt64-1)
	p := s.root.first(room, now)
	if p == nil && now < math.MaxInt64 {
		p = s.root.first(room, math.MaxInt64)
	}
	if p == nil {
		return nil
	}
	return p.shape
}

// first in line that asks for no more than the room and is in backoff no longer than
// to now.
func (p *parking) first(room, now int64) *parking {
	if p == nil || p.least > room || p.soonest > now {
		return nil
	}
	if first := p.left.first(room, now); first != nil {
		return first
	}
	if p.amount <= room && p.shape.until <= now {
		return p
	}
	return p.right.first(room, now)
}

// with is the treap with a parking more.
func (p *parking) with(more *parking) *parking {
	switch {
	case p == nil:
		return more
	case p.weight < more.weight:
		more.left, more.right = p.split(more.head)
		more.sum()
		return more
	case more.head.Before(p.head):
		p.left = p.left.with(more)
	default:
		p.right = p.right.with(more)
	}
	p.sum()
	return p
}

// without is the treap without one of its parkings.
func (p *parking) without(gone *parking) *parking {
	switch {
	case p == gone:
		return merge(p.left, p.right)
	case gone.head.Before(p.head):
		p.left = p.left.without(gone)
	default:
		p.right = p.right.without(gone)
	}
	p.sum()
	return p
}

// split parts a treap into what is before an item and what is behind it.
func (p *parking) split(at *Item) (before, behind *parking) {
	switch {
	case p == nil:
		return nil, nil
	case p.head.Before(at):
		p.right, behind = p.right.split(at)
		p.sum()
		return p, behind
	default:
		before, p.left = p.left.split(at)
		p.sum()
		return before, p
	}
}

// merge joins two treaps of which the one is before the other.
func merge(before, behind *parking) *parking {
	switch {
	case before == nil:
		return behind
	case behind == nil:
		return before
	case before.weight > behind.weight:
		before.right = merge(before.right, behind)
		before.sum()
		return before
	default:
		behind.left = merge(before, behind.left)
		behind.sum()
		return behind
	}
}

// sum brings least and soonest up to date.
func (p *parking) sum() {
	p.least, p.soonest = p.amount, p.shape.until
	for _, below := range [...]*parking{p.left, p.right} {
		if below != nil {
			p.least, p.soonest = min(p.least, below.least), min(p.soonest, below.soonest)
		}
	}
}

// each calls do for all parkings of the treap.
func (p *parking) each(do func(*parking)) {
	if p != nil {
		p.left.each(do)
		do(p)
		p.right.each(do)
	}
}
