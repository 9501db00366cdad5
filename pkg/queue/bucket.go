package queue

import (
	"math"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// bucket holds the shapes of one queue that are parked in one space, so that the first shape in queue
// order that requests at most the available room is found without visiting the others. It is a treap
// in queue order in which each entry knows the smallest request below it. Shapes in backoff are in a
// treap of their own until their backoff has ended.
type bucket struct {
	queue *Queue
	space quota.Space
	root  *bucketEntry
	late  *bucketEntry
	// open is whether there may be room for some of the shapes.
	open bool
	// place is the position in the heap of the space.
	place int32
}

// order reports whether an item comes before another.
type order = func(a, b *Item) bool

// bucketEntry is the entry of a shape in a bucket. The zero bucketEntry is in none.
type bucketEntry struct {
	shape  *Shape
	bucket *bucket
	// head is the item that determines the position of the shape.
	head   *Item
	amount int64
	// until is when the backoff of the shape ends.
	until int64

	// weight keeps the treap balanced: it is greater than the weights below the entry.
	weight      uint64
	left, right *bucketEntry
	// least is the smallest amount, and soonest the earliest end of a backoff, of this entry and
	// all entries below it.
	least, soonest int64
	// late is whether the entry is in the treap of shapes in backoff.
	late bool
}

// least returns how much must be free before any of the shapes is worth trying.
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
	*p = bucketEntry{shape: shape, bucket: s, head: shape.head(), amount: amount, until: shape.until(), weight: weight, late: s.queue.late(shape)}
	s.plant(p)
}

// plant adds an entry that is in no treap to its treap.
func (s *bucket) plant(p *bucketEntry) {
	p.sum()
	treap := s.treap(p.late)
	*treap = (*treap).with(p, s.queue.Policy.Before)
}

func (s *bucket) remove(p *bucketEntry) {
	treap := s.treap(p.late)
	*treap = (*treap).without(p, s.queue.Policy.Before)
	*p = bucketEntry{}
}

// hasOther reports whether the bucket contains another entry.
func (s *bucket) hasOther(p *bucketEntry) bool {
	alone := p.left == nil && p.right == nil
	return s.root != nil && s.root != p || s.late != nil && s.late != p || !alone
}

// first returns the first shape in queue order that requests at most the room; nil if there is none.
// Shapes in backoff come last. The time is in nanoseconds since 1970.
func (s *bucket) first(room, now int64) *Shape {
	for s.late != nil && s.late.soonest <= now {
		p := s.late.ripe()
		s.late = s.late.without(p, s.queue.Policy.Before)
		p.late, p.left, p.right = false, nil, nil
		s.plant(p)
	}
	// A request for the largest number never fits.
	room = min(room, math.MaxInt64-1)
	for _, treap := range [...]*bucketEntry{s.root, s.late} {
		if treap != nil && treap.least <= room {
			return treap.first(room).shape
		}
	}
	return nil
}

// first returns the first entry in queue order that requests at most the room. One must exist.
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

// ripe returns the entry whose backoff ends first.
func (p *bucketEntry) ripe() *bucketEntry {
	switch p.soonest {
	case p.until:
		return p
	default:
		if p.left != nil && p.left.soonest == p.soonest {
			return p.left.ripe()
		}
		return p.right.ripe()
	}
}

// with returns the treap with an entry added.
func (p *bucketEntry) with(more *bucketEntry, before order) *bucketEntry {
	switch {
	case p == nil:
		return more
	case p.weight < more.weight:
		more.left, more.right = p.split(more.head, before)
		more.sum()
		return more
	case before(more.head, p.head):
		p.left = p.left.with(more, before)
	default:
		p.right = p.right.with(more, before)
	}
	p.sum()
	return p
}

// without returns the treap with an entry removed.
func (p *bucketEntry) without(gone *bucketEntry, before order) *bucketEntry {
	switch {
	case p == gone:
		return merge(p.left, p.right)
	case before(gone.head, p.head):
		p.left = p.left.without(gone, before)
	default:
		p.right = p.right.without(gone, before)
	}
	p.sum()
	return p
}

// split divides a treap into the entries before an item and the entries behind it.
func (p *bucketEntry) split(at *Item, before order) (ahead, behind *bucketEntry) {
	switch {
	case p == nil:
		return nil, nil
	case before(p.head, at):
		p.right, behind = p.right.split(at, before)
		p.sum()
		return p, behind
	default:
		ahead, p.left = p.left.split(at, before)
		p.sum()
		return ahead, p
	}
}

// merge joins two treaps. All entries of the first are before those of the second.
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

// sum updates least and soonest.
func (p *bucketEntry) sum() {
	p.least, p.soonest = p.amount, p.until
	for _, below := range [...]*bucketEntry{p.left, p.right} {
		if below != nil {
			p.least, p.soonest = min(p.least, below.least), min(p.soonest, below.soonest)
		}
	}
}

// each calls do for all entries of the treap.
func (p *bucketEntry) each(do func(*bucketEntry)) {
	if p != nil {
		p.left.each(do)
		do(p)
		p.right.each(do)
	}
}
