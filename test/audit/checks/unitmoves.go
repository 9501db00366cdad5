package checks

import (
	"slices"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// unitMoves checks every change of a unit against the table of allowed transitions.
type unitMoves struct{}

func newUnitMoves() inspector { return unitMoves{} }

func (unitMoves) finish(*model.World, *findings) {}

type writer int

const (
	theController writer = iota
	theExtensions
)

func (by writer) user(o *model.Options) string {
	if by == theController {
		return o.Controller
	}
	return o.Extensions
}

// move is a row of the table. If stopped is set, the unit must have been evicted before and
// its job must be stopped. If unevicted is set, it must not have been. If jobEnded is set, the job must have ended according to its own
// status.
type move struct {
	from, to          []string
	by                writer
	stopped, jobEnded bool
	unevicted         bool
}

var ends = []string{string(model.Succeeded), string(model.Failed)}

var moves = []move{
	// The phase is corrected with the reason: the backoff has ended, or another cause holds the unit.
	{from: []string{model.Enqueued, model.Backoff}, to: []string{model.Enqueued, model.Backoff}, by: theController},
	{from: []string{model.Enqueued, model.Backoff}, to: []string{model.Reserved}, by: theController},
	{from: []string{model.Enqueued, model.Backoff, model.Reserved}, to: []string{model.Dequeued}, by: theController},
	{from: []string{model.Reserved}, to: []string{model.Backoff, model.Enqueued}, by: theController, unevicted: true},
	{from: []string{model.Dequeued}, to: []string{model.Running}, by: theExtensions},
	{from: []string{model.Dequeued, model.Running}, to: ends, by: theExtensions},
	// A job can end without a release: its operator or a user sets it to Failed.
	{from: []string{model.Enqueued, model.Backoff, model.Reserved}, to: ends, by: theExtensions, jobEnded: true},
	{from: []string{model.Reserved, model.Dequeued, model.Running}, to: []string{model.Backoff, model.Enqueued}, by: theController, stopped: true},
}

func (m unitMoves) see(w *model.World, c *model.Change, f *findings) {
	if c.Unit == nil || c.Same {
		return
	}
	switch {
	case !c.Unit.Gone.IsZero():
		m.seeDelete(w, c, f)
	case c.Born:
		m.seeCreate(w, c, f)
	case c.UnitWas != nil:
		m.seePhase(w, c, f)
		m.seeEviction(w, c, f)
		m.seeWhy(w, c, f)
	}
}

func (unitMoves) seeCreate(w *model.World, c *model.Change, f *findings) {
	u := c.Unit
	if u.Facts.Row == nil {
		return // anyone may create a unit for another kind of object
	}
	f.Checked++
	if c.Write.User != w.Options.Extensions {
		f.fail("wrong-writer", c.Write.Moment(), u, "%s created it, but only %s may create units for a %s", c.Write.User, w.Options.Extensions, u.Facts.JobKind)
	}
	if u.Facts.Phase != model.Enqueued {
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

func (unitMoves) seePhase(w *model.World, c *model.Change, f *findings) {
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
		if c.Write.User == m.by.user(w.Options) {
			if now.Phase == model.Dequeued && was.Phase == model.Reserved && len(was.Unready) > 0 {
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

// seeEviction: the controller evicts. job-extensions reports that the job is stopped, also if
// a user stopped it.
func (unitMoves) seeEviction(w *model.World, c *model.Change, f *findings) {
	now, was := c.Unit.Facts, c.UnitWas
	if now.Evicted == was.Evicted && now.EvictedReason == was.EvictedReason || now.Row == nil {
		return
	}
	f.Checked++
	user, o := c.Write.User, w.Options
	switch {
	case !now.Evicted && was.Evicted && now.Phase == was.Phase && now.Holds():
		f.fail("wrong-move", c.Write.Moment(), c.Unit, "%s withdrew the eviction (%s) of a unit in phase %s", user, was.EvictedReason, now.Phase)
	case !now.Evicted:
	case now.Stopped() && user != o.Extensions, !now.Stopped() && user != o.Controller:
		f.fail("wrong-writer", c.Write.Moment(), c.Unit, "%s must not write condition Evicted with reason %s", user, now.EvictedReason)
	case now.EvictedReason == "Stopped" && !was.Evicted:
		f.fail("wrong-move", c.Write.Moment(), c.Unit, "its eviction is complete (reason Stopped), but nothing had requested it")
	case now.EvictedReason == "JobChanged" && !was.Evicted && released(c):
		f.fail("wrong-move", c.Write.Moment(), c.Unit, "it returns its quota because its job changed, but the job was released")
	}
}

// released reports whether the job of the unit is released for the current attempt.
func released(c *model.Change) bool {
	return c.Job != nil && c.Job.Facts != nil && !c.Job.Facts.Suspended
}

// seeWhy: inactive units and units in a stopped queue get no quota, and an eviction must
// follow from the spec of the unit or of its queue.
func (unitMoves) seeWhy(w *model.World, c *model.Change, f *findings) {
	now, was := c.Unit.Facts, c.UnitWas
	if now.Holds() && !was.Holds() && !was.Active {
		f.fail("inactive-dequeue", c.Write.Moment(), c.Unit, "it moved to phase %s, but its spec.active is false", now.Phase)
	}
	if now.Holds() && !was.Holds() && w.Stopped(now.Queue, c.Write.Time) {
		f.fail("stopped-dequeue", c.Write.Moment(), c.Unit, "it moved to phase %s, but Queue %s is stopped by its spec.stop", now.Phase, now.Queue)
	}
	if !now.Evicted || was.Evicted {
		return
	}
	switch ran := c.Write.Time.Sub(was.DequeueTime); {
	case now.EvictedReason == "Deactivated" && was.Active:
		f.fail("undue-eviction", c.Write.Moment(), c.Unit, "it was evicted because of deactivation, but its spec.active is not false")
	case now.EvictedReason == "NotAdmitted": // a forged admission is a finding of its own
		f.fail("undue-eviction", c.Write.Moment(), c.Unit, "it was evicted because nobody admitted it, but only the controller admits units")
	case now.EvictedReason == "QueueStopped" && !w.Drained(c.Unit, was.Queue, c.Write.Time):
		f.fail("undue-eviction", c.Write.Moment(), c.Unit, "it was evicted because its queue is drained, but spec.stop of Queue %s is not Drain", was.Queue)
	case now.EvictedReason == "MaximumExecutionTime" && (was.MaxTime == 0 || ran < was.MaxTime):
		f.fail("undue-eviction", c.Write.Moment(), c.Unit, "it was evicted after a run time of %s, but its maximum execution time is %s (0: unlimited)", ran, was.MaxTime)
	}
}

func (unitMoves) seeDelete(w *model.World, c *model.Change, f *findings) {
	if c.Unit.Facts.Row == nil || !w.Options.Program(c.Write) {
		return // by garbage collection or by a user
	}
	f.Checked++
	if j := c.Job; j != nil && j.Facts != nil && j.Gone.IsZero() && !w.Deleting(j, c.Write.Time) && !leaves(w, c) {
		f.fail("unit-deleted", c.Write.Moment(), c.Unit, "%s deleted it, but %s still exists", c.Write.User, j)
	}
}

// leaves reports whether the job of a deleted unit has left the queue: before its release it
// was handed over to another system, or its mark was removed.
func leaves(w *model.World, c *model.Change) bool {
	u, j := c.Unit.Facts, c.Job.Facts
	if c.Write.User != w.Options.Extensions {
		return false
	}
	switch u.Phase {
	case model.Enqueued, model.Backoff, model.Reserved:
		// A job that was suspended by hand after its release has no mark, but is queued.
		return j.Foreign || j.Unmarked() && !u.Stopped()
	case model.Dequeued:
		return j.Foreign && j.Suspended
	}
	return false
}
