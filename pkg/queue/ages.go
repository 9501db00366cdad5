package queue

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// ages are the times at which the items of a queue were submitted.
type ages struct {
	items int
	sum   resources.Sum
	// in has the seconds in which items were submitted, and seconds orders them, the earliest on top. There are fewer
	// seconds than items.
	in      map[int64]*second
	seconds *Heap[*second]
}

// second is a second since 1970 in which a number of items was submitted.
type second struct {
	at    int64
	items int32
	place int32
}

func (a *ages) add(submitted int64) {
	if a.in == nil {
		a.in = map[int64]*second{}
		a.seconds = NewHeap(func(a, b *second) bool { return a.at < b.at }, func(s *second) *int32 { return &s.place })
	}
	a.items++
	a.sum = a.sum.Plus(submitted)
	at := secondOf(submitted)
	s := a.in[at]
	if s == nil {
		s = &second{at: at}
		a.in[at] = s
		a.seconds.Set(s)
	}
	s.items++
}

func (a *ages) remove(submitted int64) {
	a.items--
	a.sum = a.sum.Minus(submitted)
	s := a.in[secondOf(submitted)]
	if s.items--; s.items == 0 {
		a.seconds.Remove(s)
		delete(a.in, s.at)
	}
}

func secondOf(submitted int64) int64 { return submitted / time.Second.Microseconds() }

// Submissions are the times at which the items of a queue were submitted.
type Submissions struct {
	// First is the earliest time, to the second, and Mean the mean of all.
	First, Mean time.Time
}

// Submissions returns when the items were submitted; false if there are none.
func (q *Queue) Submissions() (Submissions, bool) {
	if q.ages.items == 0 {
		return Submissions{}, false
	}
	first, _ := q.ages.seconds.Top()
	return Submissions{First: time.Unix(first.at, 0), Mean: time.UnixMicro(int64(q.ages.sum.Float() / float64(q.ages.items)))}, true
}
