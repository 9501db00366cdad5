package checks

import (
	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// seeEarly checks every job that must be held, and every pod.
func seeEarly(s *state.State, c *state.Change, f *findings) {
	switch {
	case c.Pod != nil && c.Born:
		seePod(s, c, f)
	case c.Job != nil && c.Unit == nil && c.Pod == nil:
		seeJob(s, c, f)
	}
}

func seePod(s *state.State, c *state.Change, f *findings) {
	j := c.Job
	if j == nil || !j.Facts.Queued() {
		f.NotChecked++
		return
	}
	f.Checked++
	if why := held(s, j, c.Write); why != "" {
		f.fail("early-pod", c.Write.Moment(), c.Pod, "%s created it for %s, %s", c.Write.User, j, why)
	}
}

// held returns why no pod of the job may be created now, or an empty text if one may.
func held(s *state.State, j *state.Job, by *facts.Write) string {
	if j.Missed {
		return "which opted in, but was not held from its creation"
	}
	ours := j.Facts.Marked || j.WasUnit || s.Managed[j.Namespace]
	if !j.Facts.Suspended || !ours || j.Facts.Unholdable {
		return ""
	}
	if j.Suspended == j.Created && !j.Created.IsZero() {
		return "which has been suspended since its creation and was not released"
	}
	// The operator may be creating pods when its job is suspended.
	if by.Time.Sub(j.Suspended.Time) <= facts.SuspendLag {
		return ""
	}
	return "which has been suspended since " + j.Suspended.Time.UTC().Format("15:04:05.000")
}

func seeJob(s *state.State, c *state.Change, f *findings) {
	j, now, was := c.Job, c.Job.Facts, c.JobWas
	if now == nil || c.Died || c.Same {
		return
	}
	if c.Born && now.Marked && now.Queued() {
		f.Checked++
		if j.Missed {
			f.fail("hold-missed", c.Write.Moment(), j, "it was created with the mark, but is not suspended")
		}
	}
	if c.Released && was.Annotation == "true" && now.Annotation == "true" && now.Queued() && !now.Unholdable {
		f.fail("hold-missed", c.Write.Moment(), j, "%s cleared the suspend field, but not the annotation that holds the job", c.Write.User)
	}
	if parent := s.RootOf(j); c.Born && parent != nil && j.Row.Resource == "rayclusters" && !now.Suspended {
		if why := held(s, parent, c.Write); why != "" {
			f.fail("early-cluster", c.Write.Moment(), j, "it was created for %s, %s", parent, why)
		}
	}
}
