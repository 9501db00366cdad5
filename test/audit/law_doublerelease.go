package audit

// releases counts for a job the admissions of its unit and its releases.
type releases struct{ dequeued, released int }

func doubleRelease() law {
	jobs := map[string]*releases{} // by the job's UID, or that of a unit without a job
	of := func(uid string) *releases {
		if jobs[uid] == nil {
			jobs[uid] = &releases{}
		}
		return jobs[uid]
	}
	return law{
		name: "double-release", doc: "a job is released exactly once each time its unit is admitted",
		see: func(_ *world, c *change, f *Check) {
			switch {
			case c.unit != nil && c.unit.exists() && !c.same:
				key := c.unit.uid
				if c.job != nil {
					key = c.job.uid
				}
				of(key).admit(c, f)
			case c.unit == nil && c.released && c.user == Extensions:
				of(c.job.uid).release(c, f)
			}
		},
	}
}

func (r *releases) admit(c *change, f *Check) {
	now, was := c.unit.now, c.unitWas
	attempts := int(now.Status.Attempts)
	if was == nil {
		if now.holds() {
			r.dequeued = max(1, attempts)
		}
		return
	}
	dequeued := was.phase(phaseDequeued)
	again := dequeued && now.Status.Attempts > was.Status.Attempts
	if !now.phase(phaseDequeued) || dequeued && !again {
		return
	}
	f.Checked++
	r.dequeued++
	if again {
		f.fail("double-dequeue", c.Moment, c.unit, "it was admitted again (attempt %d), but its quota of the admission before was not returned", attempts)
	}
}

func (r *releases) release(c *change, f *Check) {
	f.Checked++
	r.released++
	granted := false
	phases := "the job had no unit"
	for _, u := range c.job.units {
		phases = "its unit was " + string(u.now.Status.Phase)
		granted = granted || u.now.phase(phaseDequeued, phaseRunning)
	}
	switch {
	case !granted:
		f.fail("release-without-dequeue", c.Moment, c.job, "the job was released while %s", phases)
	case r.released > r.dequeued:
		f.fail("double-release", c.Moment, c.job, "the job was released %d times, but its unit was admitted %d times", r.released, r.dequeued)
	}
}
