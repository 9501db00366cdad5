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
func (b *bucket) least() int64 {
	switch {
	case b.root == nil:
		return b.late.least
	case b.late == nil:
		return b.root.least
	default:
		return min(b.root.least, b.late.least)
	}
}

func (b *bucket) treap(late bool) **bucketEntry {
	if late {
		return &b.late
	}
	return &b.root
}

func (b *bucket) put(e *bucketEntry, shape *Shape, amount int64, weight uint64) {
	*e = bucketEntry{shape: shape, bucket: b, head: shape.head(), amount: amount, until: shape.until(), weight: weight, late: b.queue.late(shape)}
	b.plant(e)
}

// plant adds an entry that is in no treap to its treap.
func (b *bucket) plant(e *bucketEntry) {
	e.sum()
	treap := b.treap(e.late)
	*treap = (*treap).with(e, b.queue.before)
}

func (b *bucket) remove(e *bucketEntry) {
	treap := b.treap(e.late)
	*treap = (*treap).without(e, b.queue.before)
	*e = bucketEntry{}
}

// hasOther reports whether the bucket contains another entry.
func (b *bucket) hasOther(e *bucketEntry) bool {
	alone := e.left == nil && e.right == nil
	return b.root != nil && b.root != e || b.late != nil && b.late != e || !alone
}

// first returns the first shape in queue order that requests at most the room; nil if there is none.
// Shapes in backoff come last. The time is in nanoseconds since 1970.
func (b *bucket) first(room, now int64) *Shape {
	for b.late != nil && b.late.soonest <= now {
		e := b.late.ripe()
		b.late = b.late.without(e, b.queue.before)
		e.late, e.left, e.right = false, nil, nil
		b.plant(e)
	}
	// A request for the largest number never fits.
	room = min(room, math.MaxInt64-1)
	for _, treap := range [...]*bucketEntry{b.root, b.late} {
		if treap != nil && treap.least <= room {
			return treap.first(room).shape
		}
	}
	return nil
}

// first returns the first entry in queue order that requests at most the room. One must exist.
func (e *bucketEntry) first(room int64) *bucketEntry {
	switch {
	case e.left != nil && e.left.least <= room:
		return e.left.first(room)
	case e.amount <= room:
		return e
	default:
		return e.right.first(room)
	}
}

// ripe returns the entry whose backoff ends first.
func (e *bucketEntry) ripe() *bucketEntry {
	switch e.soonest {
	case e.until:
		return e
	default:
		if e.left != nil && e.left.soonest == e.soonest {
			return e.left.ripe()
		}
		return e.right.ripe()
	}
}

// with returns the treap with an entry added.
func (e *bucketEntry) with(more *bucketEntry, before order) *bucketEntry {
	switch {
	case e == nil:
		return more
	case e.weight < more.weight:
		more.left, more.right = e.split(more.head, before)
		more.sum()
		return more
	case before(more.head, e.head):
		e.left = e.left.with(more, before)
	default:
		e.right = e.right.with(more, before)
	}
	e.sum()
	return e
}

// without returns the treap with an entry removed.
func (e *bucketEntry) without(gone *bucketEntry, before order) *bucketEntry {
	switch {
	case e == gone:
		return merge(e.left, e.right)
	case before(gone.head, e.head):
		e.left = e.left.without(gone, before)
	default:
		e.right = e.right.without(gone, before)
	}
	e.sum()
	return e
}

// split divides a treap into the entries before an item and the entries behind it.
func (e *bucketEntry) split(at *Item, before order) (ahead, behind *bucketEntry) {
	switch {
	case e == nil:
		return nil, nil
	case before(e.head, at):
		e.right, behind = e.right.split(at, before)
		e.sum()
		return e, behind
	default:
		ahead, e.left = e.left.split(at, before)
		e.sum()
		return ahead, e
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
func (e *bucketEntry) sum() {
	e.least, e.soonest = e.amount, e.until
	for _, below := range [...]*bucketEntry{e.left, e.right} {
		if below != nil {
			e.least, e.soonest = min(e.least, below.least), min(e.soonest, below.soonest)
		}
	}
}

// each calls do for all entries of the treap.
func (e *bucketEntry) each(do func(*bucketEntry)) {
	if e != nil {
		e.left.each(do)
		do(e)
		e.right.each(do)
	}
}
