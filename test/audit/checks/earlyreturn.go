package checks

import "kube-queue.dev/kube-queue/test/audit/state"

// seeReturn checks each unit that returns its quota and is requeued.
func seeReturn(_ *state.State, c *state.Change, f *findings) {
	j := c.Job
	if c.Unit == nil || j == nil || j.Facts == nil || c.UnitWas == nil || !c.Unit.Gone.IsZero() {
		return
	}
	if !c.UnitWas.Holds() || c.Unit.Facts.Holds() || c.Unit.Facts.Ended() {
		return
	}
	f.Checked++
	if !j.Facts.Suspended && j.Ended.IsZero() && j.Gone.IsZero() {
		f.fail("early-return", c.Write.Moment(), c.Unit, "it moved from %s to %s, but %s is not suspended", c.UnitWas.Phase, c.Unit.Facts.Phase, j)
		return
	}
	var live []string
	for _, p := range j.Pods {
		if p.Live() {
			live = append(live, p.Name)
		}
	}
	if len(live) > 0 {
		f.fail("early-return", c.Write.Moment(), c.Unit, "it moved from %s to %s, but pods of %s still exist: %s", c.UnitWas.Phase, c.Unit.Facts.Phase, j, few(live))
	}
}
