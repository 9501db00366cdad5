package loadgen

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"kube-queue.dev/kube-queue/test/perf/pace"
)

// clock contains tasks and their times. One goroutine serves all tasks.
type clock struct {
	// earlier reports that there is a new first time.
	earlier chan struct{}

	mu    sync.Mutex
	times times
}

type entry struct {
	at    time.Duration
	index int
}

func newClock() *clock { return &clock{earlier: make(chan struct{}, 1)} }

func (c *clock) set(at time.Duration, index int) {
	c.mu.Lock()
	heap.Push(&c.times, entry{at, index})
	first := c.times[0].index == index
	c.mu.Unlock()
	if first {
		select {
		case c.earlier <- struct{}{}:
		default:
		}
	}
}

// next returns a due task, or how long it takes until the next one. any is false without tasks.
func (c *clock) next(now time.Duration) (index int, due bool, wait time.Duration, any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.times) == 0 {
		return 0, false, 0, false
	}
	if wait := c.times[0].at - now; wait > 0 {
		return 0, false, wait, true
	}
	return heap.Pop(&c.times).(entry).index, true, 0, true
}

// run sends due tasks to work until ctx ends.
func (c *clock) run(ctx context.Context, start time.Time, work chan<- int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		index, due, wait, any := c.next(time.Since(start))
		if due {
			select {
			case work <- index:
			case <-ctx.Done():
				return
			}
			continue
		}
		var rings <-chan time.Time
		if any {
			timer.Reset(wait)
			rings = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-c.earlier:
		case <-rings:
		}
	}
}

// times is a heap of entries, the earliest first.
type times []entry

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i].at < t[j].at }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(entry)) }
func (t *times) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	*t = (*t)[:last]
	return x
}

// createAll creates each unit at its time.
func (s *Run) createAll(ctx context.Context) error {
	due := func(index int) time.Duration { return s.arrivals[index].At }
	return pace.InTime(ctx, s.start, len(s.arrivals), due, createsInFlight, s.create)
}

// endAll ends each released unit after its run time.
func (s *Run) endAll(ctx context.Context) error {
	work := make(chan int)
	go s.ends.run(ctx, s.start, work)
	return pace.Crew(ctx, endsInFlight, work, s.end)
}
