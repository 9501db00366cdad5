package audit

// earlyPod follows every job that is to be held, and every pod.
type earlyPod struct{ told map[string]int }

func newEarlyPod() inspector { return &earlyPod{told: map[string]int{}} }

// perJob is how many pods of one job are named.
const perJob = 3

func (e *earlyPod) see(w *world, c *change, f *findings) {
	switch {
	case c.pod != nil && c.born:
		e.seePod(w, c, f)
	case c.job != nil && c.unit == nil && c.pod == nil:
		e.seeJob(w, c, f)
	}
}

func (e *earlyPod) finish(*world, *findings) {}

func (e *earlyPod) seePod(w *world, c *change, f *findings) {
	j := c.job
	if j == nil || !j.facts.queued() {
		f.NotJudged++
		return
	}
	f.Judged++
	if why := e.held(w, j, c.w); why != "" {
		if e.told[j.uid]++; e.told[j.uid] <= perJob {
			f.fail("early-pod", c.w.moment(), c.pod, "it was created by %s for %s, %s", c.w.User, j, why)
		}
	}
}

// held tells why no pod of a job may be created now, or nothing when one may.
func (e *earlyPod) held(w *world, j *job, by *Write) string {
	if j.missed {
		return "which opted in and should have been held from its creation"
	}
	ours := j.facts.marked || j.wasUnit || w.managed[j.namespace]
	if !j.facts.suspended || !ours || j.facts.unholdable {
		return ""
	}
	if j.suspended == j.created && !j.created.IsZero() {
		return "which is suspended since its creation and has not been released"
	}
	// The operator may be in the middle of its work when its job is suspended.
	if by.Time.Sub(j.suspended.Time) <= *w.options.SuspendLag {
		return ""
	}
	return "which is suspended since " + j.suspended.Time.UTC().Format("15:04:05.000")
}

func (e *earlyPod) seeJob(w *world, c *change, f *findings) {
	j, now, was := c.job, c.job.facts, c.jobWas
	if now == nil || c.died || c.same {
		return
	}
	if c.born && now.marked && now.queued() {
		f.Judged++
		if j.missed {
			f.fail("hold-missed", c.w.moment(), j, "it was created with its opt-in mark, but is not suspended")
		}
	}
	if c.released && was.annotation == "true" && now.annotation == "true" && now.queued() && !now.unholdable {
		f.fail("hold-missed", c.w.moment(), j, "%s cleared its suspend field, but left the annotation that holds it", c.w.User)
	}
	if parent := w.rootOf(j); c.born && parent != nil && j.resource() == "rayclusters" && !now.suspended {
		if why := e.held(w, parent, c.w); why != "" {
			f.fail("early-cluster", c.w.moment(), j, "it was created for %s, %s", parent, why)
		}
	}
}
