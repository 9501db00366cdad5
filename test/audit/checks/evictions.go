package checks

import (
	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// seeEviction: the controller evicts. job-extensions reports that the job is stopped, also if
// a user stopped it.
func seeEviction(c *state.Change, f *findings) {
	now, was := c.Unit.Facts, c.UnitWas
	if now.Evicted == was.Evicted && now.EvictedReason == was.EvictedReason || now.Row == nil {
		return
	}
	f.Checked++
	user := c.Write.User
	switch {
	case !now.Evicted && was.Evicted && now.Phase == was.Phase && now.Holds():
		f.fail("wrong-move", c.Write.Moment(), c.Unit, "%s withdrew the eviction (%s) of a unit in phase %s", user, was.EvictedReason, now.Phase)
	case !now.Evicted:
	case now.Stopped() && user != facts.Extensions, !now.Stopped() && user != facts.Controller:
		f.fail("wrong-writer", c.Write.Moment(), c.Unit, "%s must not write condition Evicted with reason %s", user, now.EvictedReason)
	case now.EvictedReason == "Stopped" && !was.Evicted:
		f.fail("wrong-move", c.Write.Moment(), c.Unit, "its eviction is complete (reason Stopped), but nothing had requested it")
	case now.EvictedReason == "JobChanged" && !was.Evicted && released(c):
		f.fail("wrong-move", c.Write.Moment(), c.Unit, "it returns its quota because its job changed, but the job was released")
	}
}

// released reports whether the job of the unit is released for the current attempt.
func released(c *state.Change) bool {
	return c.Job != nil && c.Job.Facts != nil && !c.Job.Facts.Suspended
}

// seeWhy: inactive units get no quota, and an eviction must follow from the spec of the unit.
func seeWhy(c *state.Change, f *findings) {
	now, was := c.Unit.Facts, c.UnitWas
	if now.Holds() && !was.Holds() && !was.Active {
		f.fail("inactive-dequeue", c.Write.Moment(), c.Unit, "it moved to phase %s, but its spec.active is false", now.Phase)
	}
	if !now.Evicted || was.Evicted {
		return
	}
	switch ran := c.Write.Time.Sub(was.DequeueTime); {
	case now.EvictedReason == "Deactivated" && was.Active:
		f.fail("undue-eviction", c.Write.Moment(), c.Unit, "it was evicted because of deactivation, but its spec.active is not false")
	case now.EvictedReason == "NotAdmitted": // a forged admission is a finding of its own
		f.fail("undue-eviction", c.Write.Moment(), c.Unit, "it was evicted because nobody admitted it, but only the controller admits units")
	case now.EvictedReason == "MaximumExecutionTime" && (was.MaxTime == 0 || ran < was.MaxTime):
		f.fail("undue-eviction", c.Write.Moment(), c.Unit, "it was evicted after a run time of %s, but its maximum execution time is %s (0: unlimited)", ran, was.MaxTime)
	}
}
