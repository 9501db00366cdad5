package audit

import "time"

// suspendLag is how long after a job was suspended again its operator may still create pods.
const suspendLag = time.Second

// earlyPod checks every job that must be held, and every pod.
func earlyPod() law {
	return law{
		name: "early-pod", doc: "no pod of a held job is created before its release, and every job that opts in is held from its creation",
		see: func(s *world, c *change, f *Check) {
			switch {
			case c.pod != nil && c.born:
				s.podBorn(c, f)
			case c.pod == nil && c.job != nil && c.unit == nil:
				s.jobHeld(c, f)
			}
		},
	}
}

func (s *world) podBorn(c *change, f *Check) {
	j := c.job
	if j == nil || !j.now.queued() || j.unclear {
		f.NotChecked++
		return
	}
	f.Checked++
	if why := s.whyHeld(j, c.Time); why != "" {
		f.fail("early-pod", c.Moment, c.pod, "%s created it for %s, %s", c.user, j, why)
	}
}

// whyHeld returns why no pod of the job may be created now, or "" if one may.
func (s *world) whyHeld(j *job, now time.Time) string {
	if j.missed {
		return "which opted in, but was not held from its creation"
	}
	ours := j.now.marked || j.wasUnit || s.managed[j.namespace]
	if !j.now.suspended || !ours || j.now.unholdable {
		return ""
	}
	if j.suspended == j.created && !j.created.IsZero() {
		return "which has been suspended since its creation and was not released"
	}
	// The operator may be creating pods when its job is suspended.
	if now.Sub(j.suspended.Time) <= suspendLag {
		return ""
	}
	return "which has been suspended since " + j.suspended.Time.UTC().Format("15:04:05.000")
}

func (s *world) jobHeld(c *change, f *Check) {
	j, now, was := c.job, c.job.now, c.jobWas
	if c.died || c.same {
		return
	}
	if c.born && now.marked && now.queued() {
		f.Checked++
		if j.missed {
			f.fail("hold-missed", c.Moment, j, "it was created with the mark, but is not suspended")
		}
	}
	if c.released && was.annotation == "true" && now.annotation == "true" && now.queued() && !now.unholdable {
		f.fail("hold-missed", c.Moment, j, "%s cleared the suspend field, but not the annotation that holds the job", c.user)
	}
	if parent := s.rootOf(j); c.born && parent != nil && !parent.unclear && now.kind.Resource == "rayclusters" && !now.suspended {
		if why := s.whyHeld(parent, c.Time); why != "" {
			f.fail("early-cluster", c.Moment, j, "it was created for %s, %s", parent, why)
		}
	}
}
