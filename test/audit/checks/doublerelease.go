package checks

import (
	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// doubleRelease counts for each job the admissions of its unit and its releases.
type doubleRelease struct {
	jobs map[string]*releases
}

type releases struct{ dequeued, released int }

func newDoubleRelease() inspector { return &doubleRelease{jobs: map[string]*releases{}} }

func (d *doubleRelease) of(uid string) *releases {
	if d.jobs[uid] == nil {
		d.jobs[uid] = &releases{}
	}
	return d.jobs[uid]
}

func (d *doubleRelease) see(_ *state.State, c *state.Change, f *findings) {
	if c.Unit != nil && c.Unit.Exists() && !c.Same {
		d.seeUnit(c, f)
	}
	if c.Unit == nil && c.Released && c.Write.User == facts.Extensions {
		d.seeRelease(c, f)
	}
}

func (d *doubleRelease) seeUnit(c *state.Change, f *findings) {
	now, was := c.Unit.Facts, c.UnitWas
	key := c.Unit.UID
	if c.Job != nil {
		key = c.Job.UID
	}
	if was == nil {
		if now.Holds() {
			d.of(key).dequeued = max(1, now.Attempts)
		}
		return
	}
	again := was.Phase == facts.Dequeued && now.Attempts > was.Attempts
	if now.Phase != facts.Dequeued || was.Phase == facts.Dequeued && !again {
		return
	}
	f.Checked++
	d.of(key).dequeued++
	if again {
		f.fail("double-dequeue", c.Write.Moment(), c.Unit, "it was admitted again (attempt %d), but its quota of the admission before was not returned", now.Attempts)
	}
}

func (d *doubleRelease) seeRelease(c *state.Change, f *findings) {
	f.Checked++
	count := d.of(c.Job.UID)
	count.released++
	granted := false
	phases := "the job had no unit"
	for _, u := range c.Job.Units {
		phases = "its unit was " + u.Facts.Phase
		granted = granted || u.Facts.Phase == facts.Dequeued || u.Facts.Phase == facts.Running
	}
	switch {
	case !granted:
		f.fail("release-without-dequeue", c.Write.Moment(), c.Job, "the job was released while %s", phases)
	case count.released > count.dequeued:
		f.fail("double-release", c.Write.Moment(), c.Job, "the job was released %d times, but its unit was admitted %d times", count.released, count.dequeued)
	}
}
