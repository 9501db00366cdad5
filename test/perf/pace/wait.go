package pace

import (
	"context"
	"time"
)

// Until checks a condition periodically until it holds, its check fails or ctx ends.
func Until(ctx context.Context, period time.Duration, holds func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		if is, err := holds(ctx); err != nil || is {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// Pass waits for a time.
func Pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
