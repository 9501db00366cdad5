package audit

import "slices"

// unitMoves holds every change of a unit against the table of who may do it.
type unitMoves struct{}

func newUnitMoves() inspector { return unitMoves{} }

func (unitMoves) finish(*world, *findings) {}

type writer int

const (
	theController writer = iota
	theExtensions
)

func (by writer) user(o *Options) string {
	if by == theController {
		return o.Controller
	}
	return o.Extensions
}

// move is one line of the table. Where stopped is set, the unit must have been
// evicted before, and its job be at rest; where jobEnded is, the job must have
// ended by what its own status says.
type move struct {
	from, to          []string
	by                writer
	stopped, jobEnded bool
}

var ends = []string{string(succeeded), string(failed)}

var moves = []move{
	{from: []string{enqueued, backoff}, to: []string{reserved}, by: theController},
	{from: []string{enqueued, backoff, reserved}, to: []string{dequeued}, by: theController},
	{from: []string{reserved}, to: []string{backoff}, by: theController},
	{from: []string{dequeued}, to: []string{running}, by: theExtensions},
	{from: []string{dequeued, running}, to: ends, by: theExtensions},
	// A job may end though it was never released: Failed by its operator, or by hand.
	{from: []string{enqueued, backoff, reserved}, to: ends, by: theExtensions, jobEnded: true},
	{from: []string{reserved, dequeued, running}, to: []string{backoff, enqueued}, by: theController, stopped: true},
}

func (m unitMoves) see(w *world, c *change, f *findings) {
	if c.unit == nil || c.same {
		return
	}
	switch {
	case !c.unit.gone.IsZero():
		m.seeDelete(w, c, f)
	case c.born:
		m.seeCreate(w, c, f)
	case c.unitWas != nil:
		m.seePhase(w, c, f)
		m.seeEviction(w, c, f)
		m.seeWhy(w, c, f)
	}
}

func (unitMoves) seeCreate(w *world, c *change, f *findings) {
	u := c.unit
	if u.facts.row == nil {
		return // anybody may make a unit for a thing of their own
	}
	f.Judged++
	if c.w.User != w.options.Extensions {
		f.fail("wrong-writer", c.w.moment(), u, "%s created it; only %s may, for a %s", c.w.User, w.options.Extensions, u.facts.jobKind)
	}
	if u.facts.phase != enqueued {
		f.fail("wrong-move", c.w.moment(), u, "it was created as %s", u.facts.phase)
	}
	if c.job == nil {
		return
	}
	for _, other := range c.job.units {
		if other != u {
			f.fail("twin", c.w.moment(), u, "%s already has %s", c.job, other)
		}
	}
}

func (unitMoves) seePhase(w *world, c *change, f *findings) {
	now, was := c.unit.facts, c.unitWas
	if now.phase == was.phase {
		return
	}
	f.Judged++
	if now.row == nil && slices.Contains(ends, now.phase) {
		return // who made a unit for a thing of their own ends it
	}
	known := false
	for _, m := range moves {
		switch {
		case !slices.Contains(m.from, was.phase) || !slices.Contains(m.to, now.phase):
			continue
		case m.stopped && !was.stopped():
			continue
		case m.jobEnded && (c.job == nil || c.job.ended.IsZero()):
			continue
		}
		known = true
		if c.w.User == m.by.user(w.options) {
			return
		}
	}
	switch {
	case known:
		f.fail("wrong-writer", c.w.moment(), c.unit, "%s moved it from %s to %s", c.w.User, was.phase, now.phase)
	case was.evicted && !was.stopped() && !now.ended():
		f.fail("wrong-move", c.w.moment(), c.unit, "%s moved it from %s to %s before its eviction was done (reason %s)", c.w.User, was.phase, now.phase, was.evictedReason)
	default:
		f.fail("wrong-move", c.w.moment(), c.unit, "%s moved it from %s to %s, which does not happen", c.w.User, was.phase, now.phase)
	}
}

// seeEviction: the controller evicts, job-extensions tells that the job is at
// rest, also when a person put it there.
func (unitMoves) seeEviction(w *world, c *change, f *findings) {
	now, was := c.unit.facts, c.unitWas
	if now.evicted == was.evicted && now.evictedReason == was.evictedReason || now.row == nil {
		return
	}
	f.Judged++
	user, o := c.w.User, w.options
	switch {
	case !now.evicted && was.evicted && now.phase == was.phase && now.holds():
		f.fail("wrong-move", c.w.moment(), c.unit, "%s withdrew the eviction (%s) of a unit that is %s", user, was.evictedReason, now.phase)
	case !now.evicted:
	case now.stopped() && user != o.Extensions, !now.stopped() && user != o.Controller:
		f.fail("wrong-writer", c.w.moment(), c.unit, "%s wrote condition Evicted, reason %s", user, now.evictedReason)
	case now.evictedReason == "Stopped" && !was.evicted:
		f.fail("wrong-move", c.w.moment(), c.unit, "its eviction is done (reason Stopped), but nobody had decided on it")
	}
}

// seeWhy: what is inactive gets no quota, nor does what waits in a stopped queue; and
// what is evicted must be so by its own spec or by its queue's.
func (unitMoves) seeWhy(w *world, c *change, f *findings) {
	now, was := c.unit.facts, c.unitWas
	if now.holds() && !was.holds() && !was.active {
		f.fail("inactive-dequeue", c.w.moment(), c.unit, "it became %s though its spec.active is false", now.phase)
	}
	if now.holds() && !was.holds() && w.stopped(now.queue, c.w.Time) {
		f.fail("stopped-dequeue", c.w.moment(), c.unit, "it became %s though spec.stop of Queue %s says that nothing is released", now.phase, now.queue)
	}
	if !now.evicted || was.evicted {
		return
	}
	switch ran := c.w.Time.Sub(was.dequeueTime); {
	case now.evictedReason == "Deactivated" && was.active:
		f.fail("undue-eviction", c.w.moment(), c.unit, "it was evicted as deactivated, and its spec.active is not false")
	case now.evictedReason == "QueueStopped" && !w.drained(c.unit, was.queue, c.w.Time):
		f.fail("undue-eviction", c.w.moment(), c.unit, "it was evicted because its queue was drained, and spec.stop of Queue %s is not Drain", was.queue)
	case now.evictedReason == "MaximumExecutionTime" && (was.maxTime == 0 || ran < was.maxTime):
		f.fail("undue-eviction", c.w.moment(), c.unit, "it was evicted after %s, and may run for %s (0: as long as it takes)", ran, was.maxTime)
	}
}

func (unitMoves) seeDelete(w *world, c *change, f *findings) {
	if c.unit.facts.row == nil || !w.options.program(c.w) {
		return // by garbage collection, or by a person
	}
	f.Judged++
	if j := c.job; j != nil && j.facts != nil && j.gone.IsZero() && !j.facts.deleting && !leaves(w, c) {
		f.fail("unit-deleted", c.w.moment(), c.unit, "%s deleted it, but %s is there", c.w.User, j)
	}
}

// leaves tells whether a deleted unit's job has left the queue: before its release
// it was given to another system, or somebody took its mark off.
func leaves(w *world, c *change) bool {
	u, j := c.unit.facts, c.job.facts
	if c.w.User != w.options.Extensions {
		return false
	}
	switch u.phase {
	case enqueued, backoff, reserved:
		// Suspended by hand after a release, a job is without its mark and in line.
		return j.foreign || j.unmarked() && !u.stopped()
	case dequeued:
		return j.foreign && j.suspended
	}
	return false
}
