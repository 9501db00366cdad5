package audit

// requestMismatch compares what a unit asks for with its pod sets, and with the
// pods that its job then made.
type requestMismatch struct{}

func newRequestMismatch() inspector { return requestMismatch{} }

func (requestMismatch) finish(*world, *findings) {}

func (r requestMismatch) see(_ *world, c *change, f *findings) {
	if c.unit != nil && c.unit.facts.row != nil && c.unit.gone.IsZero() {
		r.seeUnit(c, f)
	}
	for _, held := range c.closed {
		if held.job != nil && held.unit != nil && held.job.facts != nil && held.job.sized() {
			r.seeEnd(held, c, f)
		}
	}
}

func (requestMismatch) seeUnit(c *change, f *findings) {
	now, was := c.unit.facts, c.unitWas
	if was != nil && was.sum.differences(now.sum, "", "") == "" && was.total.differences(now.total, "", "") == "" {
		return
	}
	switch {
	case now.bad != "":
		f.Judged++
		f.fail("unreadable", c.w.moment(), c.unit, "%s", now.bad)
	case !now.podSets:
		f.NotJudged++
	default:
		f.Judged++
		if d := now.total.differences(now.sum, "spec.resource", "its pod sets"); d != "" {
			f.fail("sum-mismatch", c.w.moment(), c.unit, "%s", d)
		}
	}
}

// seeEnd looks at the pods of a job that ended well at its first attempt.
func (requestMismatch) seeEnd(held *claim, c *change, f *findings) {
	j := held.job
	if j.facts.end != succeeded || held.dequeues != 1 || held.unit.facts.attempts > 1 || held.unit.facts.bad != "" {
		f.NotJudged++
		return
	}
	pods := firstPods(j)
	if len(pods) < j.facts.pods || j.resource() != "jobs" && len(pods) > j.facts.pods {
		f.NotJudged++ // the log does not show them all, or the job has grown
		return
	}
	sum := amounts{}
	for _, p := range pods[:j.facts.pods] {
		sum.addTimes(p.requests, 1)
	}
	asked := amounts{}
	asked.addTimes(held.asked, 1)
	delete(asked, "pods")
	f.Judged++
	if d := asked.differences(sum, "the unit asked for", "the pods request"); d != "" {
		f.fail("pods-mismatch", c.w.moment(), held.unit, "%s has %d pods; %s", j, j.facts.pods, d)
	}
}

// firstPods are a job's pods in the order of their creation, without those that
// took the place of one of the same name.
func firstPods(j *job) []*pod {
	seen := map[string]bool{}
	var out []*pod
	for _, p := range j.pods {
		if !p.created.IsZero() && p.requests != nil && !seen[p.name] {
			seen[p.name] = true
			out = append(out, p)
		}
	}
	return out
}
