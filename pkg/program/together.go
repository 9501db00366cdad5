package program

import (
	"context"
	"errors"
)

// Work is a loop that ends when its context is done.
type Work func(context.Context) error

// Together runs loops until ctx is done. If one of them ends earlier, the others are ended too.
func Together(ctx context.Context, works ...Work) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(works))
	for _, w := range works {
		go func() {
			defer cancel()
			results <- w(ctx)
		}()
	}
	var errs []error
	for range works {
		errs = append(errs, <-results)
	}
	return errors.Join(errs...)
}
