package audit

// doubleRelease tracks which units were admitted and wait for the release of their job. Users who may change a job
// may change the annotation with the admission that it was released for, and so have it released again.
func doubleRelease() law {
	due, said := map[*unit]bool{}, map[*unit]string{}
	return law{
		name: "double-release", doc: "a job is released exactly once each time its unit is admitted",
		see: func(_ *world, c *change, f *Check) {
			switch {
			case c.unit != nil && c.unit.exists() && !c.same:
				seeDequeue(c, due, f)
			case c.unit == nil && c.released && c.user == Extensions:
				seeRelease(c, due, said, f)
			}
		},
	}
}

func seeDequeue(c *change, due map[*unit]bool, f *Check) {
	now, was := c.unit.now, c.unitWas
	switch {
	case was == nil: // its job may have been released before the log begins, or not
		due[c.unit] = now.holds()
	case !now.phase(phaseDequeued):
	case !was.phase(phaseDequeued):
		f.Checked++
		due[c.unit] = true
	case now.Status.Attempts > was.Status.Attempts:
		f.Checked++
		due[c.unit] = true
		f.fail("double-dequeue", c.Moment, c.unit, "it was admitted again (attempt %d), but its quota of the admission before was not returned",
			now.Status.Attempts)
	}
}

func seeRelease(c *change, due map[*unit]bool, said map[*unit]string, f *Check) {
	phases := "the job had no unit"
	for _, u := range c.job.units {
		if u.unclear {
			f.NotChecked++
			return
		}
		phases = "its unit was " + string(u.now.Status.Phase)
		if !u.now.phase(phaseDequeued, phaseRunning) {
			continue
		}
		if f.Checked++; !due[u] && c.jobWas.released == said[u] {
			f.fail("double-release", c.Moment, c.job, "the job was released again, but its unit was admitted only once since the release before")
		}
		due[u], said[u] = false, c.job.now.released
		return
	}
	f.Checked++
	f.fail("release-without-dequeue", c.Moment, c.job, "the job was released while %s", phases)
}
