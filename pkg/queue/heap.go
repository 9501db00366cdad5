package queue

import "slices"

// Heap keeps the least of its elements on top. Each element stores its position, so that it can be
// removed or moved. An element is in at most one heap that uses the same position.
type Heap[T any] struct {
	elements []T
	less     func(a, b T) bool
	place    func(T) *int32
}

// NewHeap returns a heap ordered by less. place returns where an element stores its position plus
// one, 0 if it is in no heap.
func NewHeap[T any](less func(a, b T) bool, place func(T) *int32) *Heap[T] {
	return &Heap[T]{less: less, place: place}
}

// Len returns the number of elements.
func (h *Heap[T]) Len() int { return len(h.elements) }

// Has reports whether the element is in the heap.
func (h *Heap[T]) Has(e T) bool { return *h.place(e) != 0 }

// Top returns the least element, or false if there is none.
func (h *Heap[T]) Top() (T, bool) {
	if len(h.elements) == 0 {
		var none T
		return none, false
	}
	return h.elements[0], true
}

// All returns all elements. The first is the least, and no decision may depend on the order of the
// rest. The caller must not change the slice.
func (h *Heap[T]) All() []T { return h.elements }

// Set adds the element, or moves it to its current position in the order.
func (h *Heap[T]) Set(e T) {
	i := int(*h.place(e)) - 1
	if i < 0 {
		h.elements = append(h.elements, e)
		i = len(h.elements) - 1
		*h.place(e) = int32(i + 1)
	}
	if !h.down(i) {
		h.up(i)
	}
}

// sort restores the heap after less has changed.
func (h *Heap[T]) sort() {
	for i := len(h.elements)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// Remove removes the element if it is in the heap.
func (h *Heap[T]) Remove(e T) {
	i := int(*h.place(e)) - 1
	if i < 0 {
		return
	}
	last := len(h.elements) - 1
	h.swap(i, last)
	var none T
	h.elements[last] = none
	h.elements = h.elements[:last]
	*h.place(e) = 0
	if i < last && !h.down(i) {
		h.up(i)
	}
}

// walk calls visit with the least element and with the children of each element for which visit returns true.
func (h *Heap[T]) walk(visit func(T) bool) { h.walkFrom(0, visit) }

func (h *Heap[T]) walkFrom(i int, visit func(T) bool) {
	if i < len(h.elements) && visit(h.elements[i]) {
		h.walkFrom(2*i+1, visit)
		h.walkFrom(2*i+2, visit)
	}
}

// inOrder calls visit with the elements in order, until visit returns false. It is meant for a few visits: each
// takes time proportional to their number.
func (h *Heap[T]) inOrder(visit func(T) bool) {
	next := make([]int, min(len(h.elements), 1), 8) // in reverse order; the next element is always below one that was visited
	for len(next) > 0 {
		least := next[len(next)-1]
		next = next[:len(next)-1]
		if !visit(h.elements[least]) {
			return
		}
		for child := 2*least + 1; child <= 2*least+2 && child < len(h.elements); child++ {
			at, _ := slices.BinarySearchFunc(next, child, func(a, b int) int {
				if h.less(h.elements[b], h.elements[a]) {
					return -1
				}
				return 1
			})
			next = slices.Insert(next, at, child)
		}
	}
}

func (h *Heap[T]) swap(i, j int) {
	h.elements[i], h.elements[j] = h.elements[j], h.elements[i]
	*h.place(h.elements[i]) = int32(i + 1)
	*h.place(h.elements[j]) = int32(j + 1)
}

func (h *Heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.elements[i], h.elements[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *Heap[T]) down(i int) bool {
	start := i
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.elements); child++ {
			if h.less(h.elements[child], h.elements[least]) {
				least = child
			}
		}
		if least == i {
			return i != start
		}
		h.swap(i, least)
		i = least
	}
}
