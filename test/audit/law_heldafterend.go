package audit

import (
	"slices"
	"time"
)

// recheck is how often job-extensions checks what is left of a deleted job.
const recheck = 10 * time.Second

// clocks measure the time between the end of a job and the end of its unit. A unit whose job is gone may show that
// pods are left. It holds quota until they are gone.
type clocks struct {
	kept map[*unit]bool   // units that have shown that pods are left
	late map[*unit]Moment // when the job of a unit ended that still holds quota
}

func heldAfterEnd() law {
	h := &clocks{kept: map[*unit]bool{}, late: map[*unit]Moment{}}
	return law{"held-after-end", "a unit ends when its job ends, and not before", h.see, h.finish}
}

func (h *clocks) see(s *world, c *change, f *Check) {
	for _, j := range s.withRoot(c.job) {
		h.follow(s, c, j, f)
	}
	if c.unit != nil {
		if !c.unit.exists() || !c.unit.now.holds() {
			h.stop(s, c.unit, c.received, f) // it was stored then or later
		}
		seeEnd(s, c, f)
	}
}

// follow starts and stops the clocks of the units of a job.
func (h *clocks) follow(s *world, c *change, j *job, f *Check) {
	for _, u := range j.units {
		over := j.over()
		switch {
		case over.IsZero() || !u.now.holds():
			h.stop(s, u, c.received, f)
			continue
		case u.now.podsRemain() && podsLeft(j):
			h.stop(s, u, c.received, f)
			h.kept[u] = true
			continue
		case !h.late[u].IsZero():
			continue
		case h.kept[u]:
			over = c.Moment
			over.Time = over.Time.Add(recheck)
		}
		h.late[u] = over
	}
}

// podsLeft reports whether pods of a job that is gone still exist.
func podsLeft(j *job) bool {
	return !j.exists() && (len(j.clusters) > 0 || slices.ContainsFunc(j.pods, (*pod).live))
}

// stop stops the clock of a unit, and reports the unit if the clock ran for too long.
func (h *clocks) stop(s *world, u *unit, now time.Time, f *Check) {
	since := h.late[u]
	delete(h.late, u)
	if since.IsZero() || now.Sub(since.Time) < s.grace || u.unclear {
		return
	}
	f.fail("held-after-end", since, u, "its job has ended or was deleted, but it still held its quota %s later", now.Sub(since.Time).Round(time.Millisecond))
}

// seeEnd checks that a unit ends with its job.
func seeEnd(s *world, c *change, f *Check) {
	u, now, was := c.unit, c.unit.now, c.unitWas
	if was == nil || c.same || !now.ended() || was.ended() || now.kind == nil {
		return
	}
	j := c.job
	if j == nil || j.unclear {
		f.NotChecked++
		return
	}
	f.Checked++
	switch {
	case j.over().IsZero() && !s.deleting(j, c.Time):
		f.fail("ended-too-early", c.Moment, u, "it is %s, but %s has not ended: %s", now.Status.Phase, j, progress(j))
	case j.now.end != Going && string(j.now.end) != string(now.Status.Phase):
		f.fail("wrong-end", c.Moment, u, "it is %s, but %s has %s", now.Status.Phase, j, j.now.end)
	}
}

func progress(j *job) string {
	switch {
	case j.now.end != Going && len(j.clusters) > 0:
		return "its RayCluster still exists"
	case j.now.state != "":
		return "it is " + j.now.state
	}
	return "its status is empty"
}

func (h *clocks) finish(s *world, f *Check) {
	early := 0
	for _, u := range s.units { // each clock that still runs
		if since := h.late[u]; !since.IsZero() && s.end.Sub(since.Time) < s.grace {
			early++
		}
		h.stop(s, u, s.end, f)
	}
	if early > 0 {
		f.NotChecked += early
		f.note("%d units still hold quota, but their jobs ended less than %s before the end of the log", early, s.grace)
	}
}
