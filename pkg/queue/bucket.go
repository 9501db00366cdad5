package queue

import (
	"math"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// stand holds the shapes of one queue that are parked in one space, so that the first
// in line that asks for no more than the room there is found without looking at the
// others: a treap in the order of the queue, in which each knows the least that is
// asked for below it. Those that are in backoff have a treap of their own, which they
// leave once backoff has ended.
type bucket struct {
	queue *Queue
	space quota.Space
	root  *bucketEntry
	late  *bucketEntry
	// open: there may be room for some of the shapes.
	open bool
	// place in the heap of the space.
	place int
}

// parking is a shape's place in a stand; the zero parking is in none.
type bucketEntry struct {
	shape  *Shape
	bucket *bucket
	// head is the item by which the shape stands where it does.
	head   *Item
	amount int64

	// weight keeps the treap in balance: a parking's is above those below it.
	weight      uint64
	left, right *bucketEntry
	// least and soonest are those of amount and of the shape's until, of this one and
	// all below.
	least, soonest int64
	// late: among those in backoff.
	late bool
}

// least is what has to be free before any of the shapes is worth trying.
func (s *bucket) least() int64 {
	switch {
	case s.root == nil:
		return s.late.least
	case s.late == nil:
		return s.root.least
	default:
		return min(s.root.least, s.late.least)
	}
}

func (s *bucket) treap(late bool) **bucketEntry {
	if late {
		return &s.late
	}
	return &s.root
}

func (s *bucket) put(p *bucketEntry, shape *Shape, amount int64, weight uint64) {
	*p = bucketEntry{shape: shape, bucket: s, head: shape.head(), amount: amount, weight: weight, late: s.queue.late(shape)}
	s.plant(p)
}

// plant puts a parking that is in no treap into its own.
func (s *bucket) plant(p *bucketEntry) {
	p.sum()
	treap := s.treap(p.late)
	*treap = (*treap).with(p)
}

func (s *bucket) remove(p *bucketEntry) {
	treap := s.treap(p.late)
	*treap = (*treap).without(p)
	*p = bucketEntry{}
}

// hasOther reports whether another shape than that of the parking stands here.
func (s *bucket) hasOther(p *bucketEntry) bool {
	alone := p.left == nil && p.right == nil
	return s.root != nil && s.root != p || s.late != nil && s.late != p || !alone
}

// first is the first shape in line that asks for no more than the room, one that is
// not in backoff before others; nil when there is none. The time is in nanoseconds
// since 1970.
func (s *bucket) first(room, now int64) *Shape {
	for s.late != nil && s.late.soonest <= now {
		p := s.late.ripe()
		s.late = s.late.without(p)
		p.late, p.left, p.right = false, nil, nil
		s.plant(p)
	}
	// What asks for the largest number there is never fits.
	room = min(room, math.MaxInt64-1)
	for _, treap := range [...]*bucketEntry{s.root, s.late} {
		if treap != nil && treap.least <= room {
			return treap.first(room).shape
		}
	}
	return nil
}

// first in line that asks for no more than the room; there is one.
func (p *bucketEntry) first(room int64) *bucketEntry {
	switch {
	case p.left != nil && p.left.least <= room:
		return p.left.first(room)
	case p.amount <= room:
		return p
	default:
		return p.right.first(room)
	}
}

// ripe is the one whose backoff ends first.
func (p *bucketEntry) ripe() *bucketEntry {
	switch p.soonest {
	case p.shape.until:
		return p
	default:
		if p.left != nil && p.left.soonest == p.soonest {
			return p.left.ripe()
		}
		return p.right.ripe()
	}
}

// with is the treap with a parking more.
func (p *bucketEntry) with(more *bucketEntry) *bucketEntry {
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
func (p *bucketEntry) without(gone *bucketEntry) *bucketEntry {
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
func (p *bucketEntry) split(at *Item) (before, behind *bucketEntry) {
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
func merge(before, behind *bucketEntry) *bucketEntry {
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
func (p *bucketEntry) sum() {
	p.least, p.soonest = p.amount, p.shape.until
	for _, below := range [...]*bucketEntry{p.left, p.right} {
		if below != nil {
			p.least, p.soonest = min(p.least, below.least), min(p.soonest, below.soonest)
		}
	}
}

// each calls do for all parkings of the treap.
func (p *bucketEntry) each(do func(*bucketEntry)) {
	if p != nil {
		p.left.each(do)
		do(p)
		p.right.each(do)
	}
}
