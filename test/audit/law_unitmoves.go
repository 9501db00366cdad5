package audit

import "slices"

// move is a row of the table.
type move struct {
	from, to  phases
	by        string // the user who makes it
	stopped   bool   // the unit was evicted before, and its job is stopped
	unevicted bool   // the unit was not evicted
	jobEnded  bool   // the job has ended according to its own status
	reason    string // the reason that the unit has afterwards; "" for any
}

var ends = phases{phaseSucceeded, phaseFailed}

var moves = []move{
	// The phase is corrected with the reason: the backoff has ended, or another cause holds the unit.
	{from: phases{phaseEnqueued, phaseBackoff}, to: phases{phaseEnqueued, phaseBackoff}, by: Controller},
	{from: phases{phaseEnqueued, phaseBackoff}, to: phases{phaseReserved}, by: Controller},
	{from: phases{phaseEnqueued, phaseBackoff, phaseReserved}, to: phases{phaseDequeued}, by: Controller},
	{from: phases{phaseReserved}, to: phases{phaseBackoff, phaseEnqueued}, by: Controller, unevicted: true},
	{from: phases{phaseDequeued}, to: phases{phaseRunning}, by: Extensions},
	// Nothing would release its job.
	{from: phases{phaseDequeued}, to: phases{phaseEnqueued}, by: Controller, reason: "KindNotQueued"},
	{from: phases{phaseDequeued, phaseRunning}, to: ends, by: Extensions},
	// A job can end without a release: its operator or a user sets it to Failed.
	{from: phases{phaseEnqueued, phaseBackoff, phaseReserved}, to: ends, by: Extensions, jobEnded: true},
	{from: phases{phaseReserved, phaseDequeued, phaseRunning}, to: phases{phaseBackoff, phaseEnqueued}, by: Controller, stopped: true},
}

// unitMoves checks every change of a unit against the table of allowed transitions.
func unitMoves() law {
	return law{
		name: "unit-moves", doc: "units change their phase only along allowed transitions, written by the program that owns the transition",
		see: func(s *world, c *change, f *Check) {
			if c.unit != nil && !c.same {
				seeMove(s, c, f)
			}
		},
	}
}

func seeMove(s *world, c *change, f *Check) {
	switch {
	case !c.unit.exists():
		seeDelete(s, c, f)
	case c.born:
		seeCreate(c, f)
	case c.unitWas != nil:
		seePhase(c, f)
		seeEviction(c, f)
		seeWhy(c, f)
	}
}

// unready returns the admission checks of the unit that are not Ready.
func (u *unitFacts) unready() (checks []string) {
	for _, c := range u.Status.AdmissionChecks {
		if c.State != "Ready" {
			checks = append(checks, c.Name)
		}
	}
	return checks
}

func seeCreate(c *change, f *Check) {
	u := c.unit
	if u.now.kind == nil {
		return // anyone may create a unit for another kind of object
	}
	f.Checked++
	if c.user != Extensions {
		f.fail("wrong-writer", c.Moment, u, "%s created it, but only %s may create units for a %s", c.user, Extensions, u.now.Spec.ConsumerRef.Kind)
	}
	if u.now.Status.Phase != phaseEnqueued {
		f.fail("wrong-move", c.Moment, u, "it was created in phase %s", u.now.Status.Phase)
	}
	if c.job == nil || u.now.Spec.Growth {
		return
	}
	for _, other := range c.job.units {
		if other != u && !other.now.Spec.Growth && !other.unclear {
			f.fail("twin", c.Moment, u, "%s already has %s", c.job, other)
		}
	}
}

func seePhase(c *change, f *Check) {
	now, was := c.unit.now, c.unitWas
	if now.Status.Phase == was.Status.Phase {
		return
	}
	f.Checked++
	if now.kind == nil && slices.Contains(ends, now.Status.Phase) {
		return // the owner of a unit for another kind of object ends it
	}
	known := false
	for _, m := range moves {
		switch {
		case !slices.Contains(m.from, was.Status.Phase) || !slices.Contains(m.to, now.Status.Phase):
			continue
		case m.stopped && !was.stopped():
			continue
		case m.unevicted && was.evicted:
			continue
		case m.reason != "" && string(now.Status.Reason) != m.reason:
			continue
		case m.jobEnded && (c.job == nil || c.job.over().IsZero()):
			continue
		}
		known = true
		if c.user == m.by {
			if now.Status.Phase == phaseDequeued && was.Status.Phase == phaseReserved && len(was.unready()) > 0 {
				f.fail("unchecked-release", c.Moment, c.unit, "it moved to phase %s, but admission checks are not Ready: %v", now.Status.Phase, was.unready())
			}
			return
		}
	}
	switch {
	case known:
		f.fail("wrong-writer", c.Moment, c.unit, "%s must not move it from %s to %s", c.user, was.Status.Phase, now.Status.Phase)
	case was.evicted && !was.stopped() && !now.ended():
		f.fail("wrong-move", c.Moment, c.unit, "%s moved it from %s to %s before its eviction was complete (reason %s)", c.user, was.Status.Phase, now.Status.Phase, was.evictedReason)
	default:
		f.fail("wrong-move", c.Moment, c.unit, "%s moved it from %s to %s, which is not an allowed transition", c.user, was.Status.Phase, now.Status.Phase)
	}
}

func seeDelete(s *world, c *change, f *Check) {
	if c.unit.now.kind == nil || !c.byProgram() || c.unit.now.Spec.Growth {
		return // by garbage collection or by a user, or for pods that the job no longer has
	}
	if c.unitWas == nil {
		f.NotChecked++
		return
	}
	f.Checked++
	if j := c.job; j != nil && !j.unclear && j.exists() && !s.deleting(j, c.Time) && !leaves(c) {
		f.fail("unit-deleted", c.Moment, c.unit, "%s deleted it, but %s still exists", c.user, j)
	}
}

// unmarked reports whether the object has no mark or belongs to another queue.
func (f *jobFacts) unmarked() bool {
	return !f.marked || f.annotation != "" && f.annotation != "true"
}

// leaves reports whether the job of a deleted unit has left the queue: before its release, it was handed over to
// another system, or its mark was removed.
func leaves(c *change) bool {
	u, j := c.unit.now, c.job.now
	if c.user != Extensions {
		return false
	}
	switch u.Status.Phase {
	case phaseEnqueued, phaseBackoff, phaseReserved:
		// A job that was suspended by hand after its release has no mark, but is queued.
		return j.foreign || j.unmarked() && !u.stopped()
	case phaseDequeued:
		return j.foreign && j.suspended
	}
	return false
}
