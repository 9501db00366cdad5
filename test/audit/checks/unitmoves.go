package checks

import (
	"slices"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// move is a row of the table.
type move struct {
	from, to  []string
	by        string // the user who makes it
	stopped   bool   // the unit was evicted before, and its job is stopped
	unevicted bool   // the unit was not evicted
	jobEnded  bool   // the job has ended according to its own status
}

var ends = []string{string(facts.Succeeded), string(facts.Failed)}

var moves = []move{
	// The phase is corrected with the reason: the backoff has ended, or another cause holds the unit.
	{from: []string{facts.Enqueued, facts.Backoff}, to: []string{facts.Enqueued, facts.Backoff}, by: facts.Controller},
	{from: []string{facts.Enqueued, facts.Backoff}, to: []string{facts.Reserved}, by: facts.Controller},
	{from: []string{facts.Enqueued, facts.Backoff, facts.Reserved}, to: []string{facts.Dequeued}, by: facts.Controller},
	{from: []string{facts.Reserved}, to: []string{facts.Backoff, facts.Enqueued}, by: facts.Controller, unevicted: true},
	{from: []string{facts.Dequeued}, to: []string{facts.Running}, by: facts.Extensions},
	{from: []string{facts.Dequeued, facts.Running}, to: ends, by: facts.Extensions},
	// A job can end without a release: its operator or a user sets it to Failed.
	{from: []string{facts.Enqueued, facts.Backoff, facts.Reserved}, to: ends, by: facts.Extensions, jobEnded: true},
	{from: []string{facts.Reserved, facts.Dequeued, facts.Running}, to: []string{facts.Backoff, facts.Enqueued}, by: facts.Controller, stopped: true},
}

// seeMove checks every change of a unit against the table of allowed transitions.
func seeMove(s *state.State, c *state.Change, f *findings) {
	if c.Unit == nil || c.Same {
		return
	}
	switch {
	case !c.Unit.Gone.IsZero():
		seeDelete(s, c, f)
	case c.Born:
		seeCreate(c, f)
	case c.UnitWas != nil:
		seePhase(c, f)
		seeEviction(c, f)
		seeWhy(c, f)
	}
}

func seeCreate(c *state.Change, f *findings) {
	u := c.Unit
	if u.Facts.Row == nil {
		return // anyone may create a unit for another kind of object
	}
	f.Checked++
	if c.Write.User != facts.Extensions {
		f.fail("wrong-writer", c.Write.Moment(), u, "%s created it, but only %s may create units for a %s", c.Write.User, facts.Extensions, u.Facts.JobKind)
	}
	if u.Facts.Phase != facts.Enqueued {
		f.fail("wrong-move", c.Write.Moment(), u, "it was created in phase %s", u.Facts.Phase)
	}
	if c.Job == nil {
		return
	}
	for _, other := range c.Job.Units {
		if other != u {
			f.fail("twin", c.Write.Moment(), u, "%s already has %s", c.Job, other)
		}
	}
}

func seePhase(c *state.Change, f *findings) {
	now, was := c.Unit.Facts, c.UnitWas
	if now.Phase == was.Phase {
		return
	}
	f.Checked++
	if now.Row == nil && slices.Contains(ends, now.Phase) {
		return // the owner of a unit for another kind of object ends it
	}
	known := false
	for _, m := range moves {
		switch {
		case !slices.Contains(m.from, was.Phase) || !slices.Contains(m.to, now.Phase):
			continue
		case m.stopped && !was.Stopped():
			continue
		case m.unevicted && was.Evicted:
			continue
		case m.jobEnded && (c.Job == nil || c.Job.Ended.IsZero() && c.Job.Gone.IsZero()):
			continue
		}
		known = true
		if c.Write.User == m.by {
			if now.Phase == facts.Dequeued && was.Phase == facts.Reserved && len(was.Unready) > 0 {
				f.fail("unchecked-release", c.Write.Moment(), c.Unit, "it moved to phase %s, but admission checks are not Ready: %v", now.Phase, was.Unready)
			}
			return
		}
	}
	switch {
	case known:
		f.fail("wrong-writer", c.Write.Moment(), c.Unit, "%s must not move it from %s to %s", c.Write.User, was.Phase, now.Phase)
	case was.Evicted && !was.Stopped() && !now.Ended():
		f.fail("wrong-move", c.Write.Moment(), c.Unit, "%s moved it from %s to %s before its eviction was complete (reason %s)", c.Write.User, was.Phase, now.Phase, was.EvictedReason)
	default:
		f.fail("wrong-move", c.Write.Moment(), c.Unit, "%s moved it from %s to %s, which is not an allowed transition", c.Write.User, was.Phase, now.Phase)
	}
}

func seeDelete(s *state.State, c *state.Change, f *findings) {
	if c.Unit.Facts.Row == nil || !c.Write.ByProgram() {
		return // by garbage collection or by a user
	}
	f.Checked++
	if j := c.Job; j != nil && j.Facts != nil && j.Gone.IsZero() && !s.Deleting(j, c.Write.Time) && !leaves(c) {
		f.fail("unit-deleted", c.Write.Moment(), c.Unit, "%s deleted it, but %s still exists", c.Write.User, j)
	}
}

// leaves reports whether the job of a deleted unit has left the queue: before its release it
// was handed over to another system, or its mark was removed.
func leaves(c *state.Change) bool {
	u, j := c.Unit.Facts, c.Job.Facts
	if c.Write.User != facts.Extensions {
		return false
	}
	switch u.Phase {
	case facts.Enqueued, facts.Backoff, facts.Reserved:
		// A job that was suspended by hand after its release has no mark, but is queued.
		return j.Foreign || j.Unmarked() && !u.Stopped()
	case facts.Dequeued:
		return j.Foreign && j.Suspended
	}
	return false
}
