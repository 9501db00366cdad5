package audit

// earlyReturn checks each unit that returns its quota and is requeued.
func earlyReturn() law {
	return law{
		name: "early-return", doc: "an evicted unit returns its quota only when its job is suspended and its pods are gone",
		see: func(_ *world, c *change, f *Check) {
			if c.unit == nil || !c.unit.exists() || c.job == nil || c.job.unclear || !c.unitWas.holds() || c.unit.now.holds() || c.unit.now.ended() {
				return
			}
			f.Checked++
			j, from, to := c.job, c.unitWas.Status.Phase, c.unit.now.Status.Phase
			if !j.now.suspended && j.over().IsZero() {
				f.fail("early-return", c.Moment, c.unit, "it moved from %s to %s, but %s is not suspended", from, to, j)
				return
			}
			var live []string
			for _, p := range j.pods {
				if p.live() {
					live = append(live, p.name)
				}
			}
			if len(live) > 0 {
				f.fail("early-return", c.Moment, c.unit, "it moved from %s to %s, but pods of %s still exist: %s", from, to, j, few(live))
			}
		},
	}
}
