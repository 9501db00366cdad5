package checks

import (
	"kube-queue.dev/kube-queue/test/audit/model"
)

// requestMismatch compares the request of a unit with its pod sets, and with the pods of its
// job.
type requestMismatch struct{}

func newRequestMismatch() inspector { return requestMismatch{} }

func (requestMismatch) finish(*model.World, *findings) {}

func (r requestMismatch) see(_ *model.World, c *model.Change, f *findings) {
	if c.Unit != nil && c.Unit.Facts.Row != nil && c.Unit.Gone.IsZero() {
		r.seeUnit(c, f)
	}
	if c.Released && c.Job != nil && c.Job.Facts != nil && c.Job.Sized() {
		r.seeRelease(c, f)
	}
	for _, held := range c.Closed {
		if held.Job != nil && held.Unit != nil && held.Job.Facts != nil && held.Job.Sized() {
			r.seeEnd(held, c, f)
		}
	}
}

func (requestMismatch) seeUnit(c *model.Change, f *findings) {
	now, was := c.Unit.Facts, c.UnitWas
	if was != nil && was.Sum.Differences(now.Sum, "", "") == "" && was.Total.Differences(now.Total, "", "") == "" {
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
func (requestMismatch) seeRelease(c *model.Change, f *findings) {
	for _, u := range c.Job.Units {
		if u.Facts == nil || !u.Gone.IsZero() || !u.Facts.Fewer {
			continue
		}
		f.Checked++
		if pods := int64(c.Job.Facts.Pods); pods > u.Facts.Pods() {
			f.fail("more-pods", c.Write.Moment(), u, "%s is released with %d pods, but was admitted with %d", c.Job, pods, u.Facts.Pods())
		}
	}
}

// seeEnd checks the pods of a job that succeeded at its first attempt.
func (requestMismatch) seeEnd(held *model.Claim, c *model.Change, f *findings) {
	j := held.Job
	if j.Facts.End != model.Succeeded || held.Dequeues != 1 || held.Unit.Facts.Attempts > 1 || held.Unit.Facts.Bad != "" {
		f.NotChecked++
		return
	}
	pods := firstPods(j)
	if len(pods) < j.Facts.Pods || j.Resource() != "jobs" && len(pods) > j.Facts.Pods {
		f.NotChecked++ // the log does not contain all of them, or the job has grown
		return
	}
	sum := model.Amounts{}
	for _, p := range pods[:j.Facts.Pods] {
		sum.AddTimes(p.Requests, 1)
	}
	requested := model.Amounts{}
	requested.AddTimes(held.Asked, 1)
	delete(requested, "pods")
	f.Checked++
	if d := requested.Differences(sum, "the unit requested", "the pods request"); d != "" {
		f.fail("pods-mismatch", c.Write.Moment(), held.Unit, "%s has %d pods; %s", j, j.Facts.Pods, d)
	}
}

// firstPods returns the pods of a job in the order of their creation, without replacements of
// pods of the same name.
func firstPods(j *model.Job) []*model.Pod {
	seen := map[string]bool{}
	var out []*model.Pod
	for _, p := range j.Pods {
		if !p.Created.IsZero() && p.Requests != nil && !seen[p.Name] {
			seen[p.Name] = true
			out = append(out, p)
		}
	}
	return out
}
