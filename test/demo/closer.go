package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// closer deletes jobs that run until somebody does, each once, when it has been
// shown running for a while.
type closer struct {
	after   time.Duration
	kubectl func(ctx context.Context, args ...string) (string, error)
	// reported is what the closer does, to be shown between two frames.
	told chan step
	// running are those that wait, or delete; they end with their context.
	running sync.WaitGroup
	begun   map[job]bool
}

// step is a command that was given, or what came of it.
type step struct {
	text string
	err  error
}

func newCloser(after time.Duration, kubectl func(context.Context, ...string) (string, error)) *closer {
	return &closer{after: after, kubectl: kubectl, told: make(chan step), begun: map[job]bool{}}
}

// see begins with the jobs that have come to run.
func (c *closer) see(ctx context.Context, rows []row) {
	for _, r := range rows {
		if r.job.endless && r.phase == "Running" && !c.begun[r.job] {
			c.begun[r.job] = true
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
	c.tell(ctx, step{text: "kubectl delete " + j.argument() + "\n"})
	out, err := c.kubectl(ctx, "delete", j.argument())
	if err != nil {
		err = fmt.Errorf("deleting %s: %w", j, err)
	}
	c.tell(ctx, step{indent(out), err})
}

func (c *closer) tell(ctx context.Context, done step) {
	select {
	case <-ctx.Done():
	case c.told <- done:
	}
}
