package checks

import (
	"maps"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// requestMismatch compares the request of a unit with its pod sets, and with the pods of its
// job.
type requestMismatch struct{}

func newRequestMismatch() inspector { return requestMismatch{} }

func (requestMismatch) finish(*state.State, *findings) {}

func (r requestMismatch) see(_ *state.State, c *state.Change, f *findings) {
	if c.Unit != nil && c.Unit.Facts.Row != nil && c.Unit.Exists() {
		r.seeUnit(c, f)
	}
	if c.Released && c.Job.Row.Sized() {
		r.seeRelease(c, f)
	}
	if c.Ended && c.Job.Row.Sized() {
		for _, u := range c.Job.Units {
			r.seeEnd(c, u, f)
		}
	}
}

func (requestMismatch) seeUnit(c *state.Change, f *findings) {
	now, was := c.Unit.Facts, c.UnitWas
	if was != nil && was.Sum.Equal(now.Sum) && was.Total.Equal(now.Total) {
		return
	}
	switch {
	case now.Bad != "":
		f.Checked++
		f.fail("unreadable", c.Write.Moment(), c.Unit, "%s", now.Bad)
	case !now.PodSets:
		f.NotChecked++
	default:
		f.Checked++
		if d := now.Total.Differences(now.Sum, "spec.resource", "its pod sets"); d != "" {
			f.fail("sum-mismatch", c.Write.Moment(), c.Unit, "%s", d)
		}
	}
}

// seeRelease checks that a job whose unit was admitted with fewer pods than it requests is released with no more.
func (requestMismatch) seeRelease(c *state.Change, f *findings) {
	for _, u := range c.Job.Units {
		if !u.Facts.Fewer {
			continue
		}
		f.Checked++
		if pods := int64(c.Job.Facts.Pods); pods > u.Facts.Pods() {
			f.fail("more-pods", c.Write.Moment(), u, "%s is released with %d pods, but was admitted with %d", c.Job, pods, u.Facts.Pods())
		}
	}
}

// seeEnd checks the pods of a job that succeeded at its first attempt.
func (requestMismatch) seeEnd(c *state.Change, u *state.Unit, f *findings) {
	j := c.Job
	pods := firstPods(j)
	if !u.Facts.Holds() || j.Facts.End != facts.Succeeded || u.Facts.Attempts > 1 || u.Facts.Bad != "" ||
		len(pods) < j.Facts.Pods || j.Row.Resource() != "jobs" && len(pods) > j.Facts.Pods {
		f.NotChecked++ // the log does not contain all pods of one attempt, or the job has grown
		return
	}
	sum := facts.Amounts{}
	for _, p := range pods[:j.Facts.Pods] {
		sum.AddTimes(p.Requests, 1)
	}
	asked := maps.Clone(u.Facts.Total)
	delete(asked, "pods")
	f.Checked++
	if d := asked.Differences(sum, "the unit requested", "the pods request"); d != "" {
		f.fail("pods-mismatch", c.Write.Moment(), u, "%s has %d pods; %s", j, j.Facts.Pods, d)
	}
}

// firstPods returns the pods of a job in the order of their creation, without replacements of
// pods of the same name.
func firstPods(j *state.Job) []*state.Pod {
	seen := map[string]bool{}
	var out []*state.Pod
	for _, p := range j.Pods {
		if !p.Created.IsZero() && p.Requests != nil && !seen[p.Name] {
			seen[p.Name] = true
			out = append(out, p)
		}
	}
	return out
}
