// Package pace runs many tasks at their times, such as the creation of units and jobs, and waits.
//
// Invariant: a task starts at its time even if others are late (an open loop). A late task
// starts immediately.
package pace

import (
	"context"
	"sync"
	"time"
)

// Each runs each task as soon as possible, with a number of workers.
func Each(ctx context.Context, count, workers int, do func(context.Context, int) error) error {
	return InTime(ctx, time.Now(), count, func(int) time.Duration { return 0 }, workers, do)
}

// InTime runs each task at its time after the start, with a number of workers. It returns when all
// tasks are done, a task fails or ctx ends.
func InTime(ctx context.Context, start time.Time, count int, at func(index int) time.Duration, workers int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work := make(chan int)
	go feed(ctx, start, count, at, work)
	return Crew(ctx, workers, work, do)
}

func feed(ctx context.Context, start time.Time, count int, at func(index int) time.Duration, work chan<- int) {
	defer close(work)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for index := range count {
		if wait := at(index) - time.Since(start); wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
		}
		select {
		case <-ctx.Done():
			return
		case work <- index:
		}
	}
}

// Crew runs a number of workers until the channel work is closed, a task fails or ctx ends.
func Crew(ctx context.Context, workers int, work <-chan int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case index, more := <-work:
					if !more {
						return
					}
					if err := do(ctx, index); err != nil {
						cancel(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
