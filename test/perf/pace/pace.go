// Package pace runs many tasks, several at a time, and waits.
package pace

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
)

// Each does a task for each index with a number of workers. The first error ends it.
func Each(ctx context.Context, workers, count int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, workers, count, func(index int) {
		if err := do(ctx, index); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// InTime is like Each, but begins each task at its time after the start. A task that is late begins
// immediately, and delays no other task as long as a worker is free (an open loop).
func InTime(ctx context.Context, start time.Time, workers, count int, at func(int) time.Duration, do func(context.Context, int) error) error {
	return Each(ctx, workers, count, func(ctx context.Context, index int) error {
		if err := Pass(ctx, at(index)-time.Since(start)); err != nil {
			return err
		}
		return do(ctx, index)
	})
}

// Rate returns the times of tasks that begin at this rate per second, or all at once if it is 0.
func Rate(rate float64) func(index int) time.Duration {
	return func(index int) time.Duration {
		if rate == 0 {
			return 0
		}
		return time.Duration(float64(index) / rate * float64(time.Second))
	}
}

// Until checks a condition until it holds or its check fails. If it does not hold in time, the error is late.
func Until(ctx context.Context, period, timeout time.Duration, late error, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, period, true, holds)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Pass waits for a time.
func Pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
