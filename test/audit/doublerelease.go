package audit

// doubleRelease counts, for each job, how often its unit was dequeued and how
// often it was released.
type doubleRelease struct{ jobs map[string]*releases }

type releases struct{ dequeued, released int }

func newDoubleRelease() inspector { return &doubleRelease{jobs: map[string]*releases{}} }

func (d *doubleRelease) finish(*world, *findings) {}

func (d *doubleRelease) of(uid string) *releases {
	if d.jobs[uid] == nil {
		d.jobs[uid] = &releases{}
	}
	return d.jobs[uid]
}

func (d *doubleRelease) see(w *world, c *change, f *findings) {
	if c.unit != nil && c.unit.gone.IsZero() && !c.same {
		d.seeUnit(w, c, f)
	}
	if c.unit == nil && c.released && c.w.User == w.options.Extensions {
		d.seeRelease(c, f)
	}
}

func (d *doubleRelease) seeUnit(w *world, c *change, f *findings) {
	now, was := c.unit.facts, c.unitWas
	key := c.unit.uid
	if c.job != nil {
		key = c.job.uid
	}
	if was == nil {
		if now.holds() {
			d.of(key).dequeued = max(1, now.attempts)
		}
		return
	}
	again := was.phase == dequeued && now.phase == dequeued && now.attempts > was.attempts
	if now.phase != dequeued || was.phase == dequeued && !again {
		return
	}
	f.Judged++
	d.of(key).dequeued++
	if held := w.claims[key]; held != nil && (again || held.dequeues > 1) {
		f.fail("double-dequeue", c.w.moment(), c.unit, "dequeued again (attempt %d) though what it was given at %s had not been given back",
			now.attempts, held.opened.Time.UTC().Format("15:04:05.000"))
	}
}

func (d *doubleRelease) seeRelease(c *change, f *findings) {
	f.Judged++
	count := d.of(c.job.uid)
	count.released++
	granted := false
	phases := "it has no unit"
	for _, u := range c.job.units {
		phases = "its unit is " + u.facts.phase
		granted = granted || u.facts.phase == dequeued || u.facts.phase == running
	}
	switch {
	case !granted:
		f.fail("release-without-dequeue", c.w.moment(), c.job, "released while %s", phases)
	case count.released > count.dequeued:
		f.fail("double-release", c.w.moment(), c.job, "released %d times, but its unit was dequeued %d times", count.released, count.dequeued)
	}
}
