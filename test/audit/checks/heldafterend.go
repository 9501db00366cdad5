package checks

import (
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// recheck is how often job-extensions checks what is left of a job that is gone.
const recheck = 10 * time.Second

// heldAfterEnd measures the time between the end of a job and the end of its unit. A unit whose job is
// gone may show that pods are left; it holds quota until they are gone.
type heldAfterEnd struct {
	kept map[*state.Unit]bool         // units that have shown that pods are left
	late map[*state.Unit]facts.Moment // since when units hold quota though their job is over
}

func newHeldAfterEnd() inspector {
	return &heldAfterEnd{kept: map[*state.Unit]bool{}, late: map[*state.Unit]facts.Moment{}}
}

func (h *heldAfterEnd) see(s *state.State, c *state.Change, f *findings) {
	for _, j := range []*state.Job{c.Job, s.RootOf(c.Job)} {
		if j != nil {
			h.follow(s, c, j, f)
		}
	}
	if c.Unit != nil {
		if !c.Unit.Exists() || !c.Unit.Facts.Holds() {
			h.stop(s, c.Unit, c.Write.Received, f) // it was stored at that time or later
		}
		seeEnd(s, c, f)
	}
}

// follow starts and stops the clocks of the units of a job.
func (h *heldAfterEnd) follow(s *state.State, c *state.Change, j *state.Job, f *findings) {
	for _, u := range j.Units {
		over := j.Over()
		switch {
		case over.IsZero() || !u.Facts.Holds():
			h.stop(s, u, c.Write.Received, f)
			continue
		case u.Facts.PodsRemain() && podsLeft(j):
			h.stop(s, u, c.Write.Received, f)
			h.kept[u] = true
			continue
		case !h.late[u].IsZero():
			continue
		case h.kept[u]:
			over = c.Write.Moment()
			over.Time = over.Time.Add(recheck)
		}
		h.late[u] = over
	}
}

// podsLeft reports whether pods of a job that is gone still exist.
func podsLeft(j *state.Job) bool {
	return !j.Gone.IsZero() && (len(j.Clusters) > 0 || slices.ContainsFunc(j.Pods, (*state.Pod).Live))
}

// stop stops the clock of a unit, and reports it if it ran for too long.
func (h *heldAfterEnd) stop(s *state.State, u *state.Unit, now time.Time, f *findings) {
	since := h.late[u]
	delete(h.late, u)
	if since.IsZero() || now.Sub(since.Time) < *s.Options.Grace {
		return
	}
	f.fail("held-after-end", since, u, "its job has ended or was deleted, but it still held its quota %s later", now.Sub(since.Time).Round(time.Millisecond))
}

// seeEnd checks that a unit ends with its job.
func seeEnd(s *state.State, c *state.Change, f *findings) {
	u, now, was := c.Unit, c.Unit.Facts, c.UnitWas
	if was == nil || c.Same || !now.Ended() || was.Ended() || now.Row == nil {
		return
	}
	j := c.Job
	if j == nil || j.Facts == nil {
		f.NotChecked++
		return
	}
	f.Checked++
	switch {
	case j.Over().IsZero() && !s.Deleting(j, c.Write.Time):
		f.fail("ended-too-early", c.Write.Moment(), u, "it is %s, but %s has not ended: %s", now.Phase, j, progress(j))
	case j.Facts.End != facts.Going && string(j.Facts.End) != now.Phase:
		f.fail("wrong-end", c.Write.Moment(), u, "it is %s, but %s has %s", now.Phase, j, j.Facts.End)
	}
}

func progress(j *state.Job) string {
	switch {
	case j.Facts.End != facts.Going && len(j.Clusters) > 0:
		return "its RayCluster still exists"
	case j.Facts.State != "":
		return "it is " + j.Facts.State
	}
	return "its status is empty"
}

func (h *heldAfterEnd) finish(s *state.State, f *findings) {
	early := 0
	for _, u := range s.Units { // each clock that still runs
		if since := h.late[u]; !since.IsZero() && s.End.Sub(since.Time) < *s.Options.Grace {
			early++
		}
		h.stop(s, u, s.End, f)
	}
	if early > 0 {
		f.NotChecked += early
		f.note("%d units still hold quota, but their jobs ended less than %s before the end of the log", early, *s.Options.Grace)
	}
}
