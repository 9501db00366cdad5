// Package backoff computes how long to wait between steps that others trigger repeatedly, such as the writes after each
// change of a job. The first steps do not wait, so occasional changes are not slowed down. If the steps continue, each
// wait is longer than the previous one.
//
// A step that keeps a job from running without quota never waits: if a user resumes a waiting job, it is suspended
// again immediately.
//
// The package is pure: the time is an argument.
package backoff

import (
	"math"
	"time"
)

// Policy defines the waits. The first Free steps cause no wait. The next step causes the wait Initial, and each further
// step doubles the wait, up to Max. All steps are forgotten if no step follows within Quiet after the end of a wait;
// never if Quiet is 0.
type Policy struct {
	Free                int32
	Initial, Max, Quiet time.Duration
}

// State is the state after some steps. The zero State is the state before the first step.
type State struct {
	// Count is the number of steps that are not forgotten.
	Count int32
	// Until is when the next step may follow.
	Until time.Time
}

// Step returns the state after another step now.
func (p Policy) Step(s State, now time.Time) State { return p.Fail(s, now, now) }

// Fail returns the state after a try that began earlier fails now. The try does not count as quiet time: otherwise, the
// wait would never grow after tries that take longer than Quiet.
func (p Policy) Fail(s State, began, now time.Time) State {
	if p.Forgotten(s, began) {
		s.Count = 0
	}
	if s.Count < math.MaxInt32 {
		s.Count++
	}
	return State{Count: s.Count, Until: now.Add(p.wait(s.Count))}
}

// Forgotten reports whether the next step counts as the first one.
func (p Policy) Forgotten(s State, now time.Time) bool {
	return p.Quiet > 0 && !now.Before(s.Until.Add(p.Quiet))
}

// wait returns the wait after a number of steps.
func (p Policy) wait(count int32) time.Duration {
	if count <= p.Free {
		return 0
	}
	wait := p.Initial
	for range count - p.Free - 1 {
		if wait >= p.Max {
			break
		}
		wait *= 2
	}
	return min(wait, p.Max)
}
