package loadgen

import (
	"context"
	"fmt"
	"time"
)

// stall is the time without events after which a run fails.
const stall = 2 * time.Minute

// RunStream runs a scenario of kind Stream until each unit was released and has ended.
func (s *Run) RunStream(ctx context.Context) error {
	return s.Play(ctx, func(ctx context.Context) error {
		return s.reach(ctx, "all have ended", func(c Counts) bool { return c.Ended == len(s.units) })
	})
}

// reach waits for a state. It fails if nothing happens for too long.
func (s *Run) reach(ctx context.Context, state string, holds func(Counts) bool) error {
	stalled := false
	err := s.Until(ctx, func(c Counts) bool {
		last := c.LastEvent
		if c.Created < len(s.units) {
			// A scenario can have long intervals between arrivals.
			last = max(last, s.arrivals[c.Created].At)
		}
		stalled = s.Elapsed()-max(last, s.moved) > stall
		return stalled || holds(c)
	})
	if err == nil && stalled && !holds(s.Counts()) {
		return fmt.Errorf("no event for %v while waiting until %s: %s; see the log of the controller", stall, state, s.Progress())
	}
	return err
}
