package audit

// earlyReturn looks at each unit that gives its quota back and stands in line
// again.
type earlyReturn struct{}

func newEarlyReturn() inspector { return earlyReturn{} }

func (earlyReturn) finish(*world, *findings) {}

func (earlyReturn) see(_ *world, c *change, f *findings) {
	j := c.job
	if c.unit == nil || j == nil || j.facts == nil || c.unitWas == nil || !c.unit.gone.IsZero() {
		return
	}
	if !c.unitWas.holds() || c.unit.facts.holds() || c.unit.facts.ended() {
		return
	}
	f.Judged++
	if !j.facts.suspended && j.ended.IsZero() && j.gone.IsZero() {
		f.fail("early-return", c.w.moment(), c.unit, "it went from %s to %s, but %s is not suspended", c.unitWas.phase, c.unit.facts.phase, j)
		return
	}
	var live []string
	for _, p := range j.pods {
		if p.live() {
			live = append(live, p.name)
		}
	}
	if len(live) > 0 {
		f.fail("early-return", c.w.moment(), c.unit, "it went from %s to %s, but pods of %s are still there: %s", c.unitWas.phase, c.unit.facts.phase, j, few(live))
	}
}
