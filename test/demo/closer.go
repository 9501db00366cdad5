package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// closer deletes jobs that never end on their own, each once, after they have been shown
// running for a while.
type closer struct {
	after   time.Duration
	kubectl func(ctx context.Context, args ...string) (string, error)
	// steps are the actions of the closer, to be shown between two frames.
	steps chan step
	// running are the goroutines that wait or delete; they end with their context.
	running sync.WaitGroup
	// started are the jobs whose deletion is scheduled.
	started map[job]bool
}

// step is a command of the closer, or its result.
type step struct {
	text string
	err  error
}

func newCloser(after time.Duration, kubectl func(context.Context, ...string) (string, error)) *closer {
	return &closer{after: after, kubectl: kubectl, steps: make(chan step), started: map[job]bool{}}
}

// see schedules the deletion of endless jobs that have started to run.
func (c *closer) see(ctx context.Context, rows []row) {
	for _, r := range rows {
		if r.job.endless && r.phase == "Running" && !c.started[r.job] {
			c.started[r.job] = true
			c.running.Go(func() { c.close(ctx, r.job) })
		}
	}
}

func (c *closer) close(ctx context.Context, j job) {
	timer := time.NewTimer(c.after)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	c.report(ctx, step{text: "kubectl delete " + j.argument() + "\n"})
	out, err := c.kubectl(ctx, "delete", j.argument())
	if err != nil {
		err = fmt.Errorf("deleting %s: %w", j, err)
	}
	c.report(ctx, step{indent(out), err})
}

func (c *closer) report(ctx context.Context, done step) {
	select {
	case <-ctx.Done():
	case c.steps <- done:
	}
}
