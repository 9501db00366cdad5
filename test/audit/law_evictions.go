package audit

import (
	"time"

	"k8s.io/utils/ptr"
)

// seeEviction: the controller evicts. job-extensions reports that the job has stopped, even if a user stopped it.
func seeEviction(c *change, f *Check) {
	now, was := c.unit.now, c.unitWas
	if now.evicted == was.evicted && now.evictedReason == was.evictedReason || now.kind == nil {
		return
	}
	f.Checked++
	user := c.user
	switch {
	case !now.evicted && was.evicted && now.Status.Phase == was.Status.Phase && now.holds():
		f.fail("wrong-move", c.Moment, c.unit, "%s withdrew the eviction (%s) of a unit in phase %s", user, was.evictedReason, now.Status.Phase)
	case !now.evicted:
	case now.stopped() && user != Extensions, !now.stopped() && user != Controller:
		f.fail("wrong-writer", c.Moment, c.unit, "%s must not write condition Evicted with reason %s", user, now.evictedReason)
	case now.evictedReason == "Stopped" && !was.evicted:
		f.fail("wrong-move", c.Moment, c.unit, "its eviction is complete (reason Stopped), but nothing had requested it")
	case now.evictedReason == "JobChanged" && !was.evicted && released(c):
		f.fail("wrong-move", c.Moment, c.unit, "it returns its quota because its job changed, but the job was released")
	}
}

// released reports whether the job of the unit is released for the current attempt.
func released(c *change) bool {
	return c.job != nil && !c.job.now.suspended
}

// seeWhy: inactive units get no quota, and an eviction must follow from the spec of the unit.
func seeWhy(c *change, f *Check) {
	now, was := c.unit.now, c.unitWas
	if now.holds() && !was.holds() && !was.active() {
		f.fail("inactive-dequeue", c.Moment, c.unit, "it moved to phase %s, but its spec.active is false", now.Status.Phase)
	}
	if !now.evicted || was.evicted {
		return
	}
	limit, ran := time.Duration(ptr.Deref(was.Spec.MaximumExecutionTimeSeconds, 0))*time.Second, time.Duration(0)
	if since := was.Status.DequeueTime; since != nil {
		ran = c.Time.Sub(since.Time)
	}
	switch {
	case now.evictedReason == "Deactivated" && was.active():
		f.fail("undue-eviction", c.Moment, c.unit, "it was evicted because of deactivation, but its spec.active is not false")
	case now.evictedReason == "NotAdmitted": // a forged admission has its own finding
		f.fail("undue-eviction", c.Moment, c.unit, "it was evicted because nobody admitted it, but only the controller admits units")
	case now.evictedReason == "MaximumExecutionTime" && (limit == 0 || ran < limit):
		f.fail("undue-eviction", c.Moment, c.unit, "it was evicted after a run time of %s, but its maximum execution time is %s (0: unlimited)", ran, limit)
	}
}
