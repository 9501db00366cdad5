package checks

import (
	"slices"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// overLimitByPods recomputes the use of the quota tree at each admission, with the pods that the
// controller must have counted. It does not report an admission that does not fit even without them,
// as overLimit does.
type overLimitByPods struct{}

func newOverLimitByPods() inspector { return overLimitByPods{} }

func (overLimitByPods) finish(*model.World, *findings) {}

func (overLimitByPods) see(w *model.World, c *model.Change, f *findings) {
	if c.Opened == nil || slices.Contains(c.Closed, c.Opened) {
		return
	}
	ruling := w.Forest.Ruling(c.Write.Time, *w.Options.TreeLag)
	if len(ruling) == 0 {
		f.NotChecked++
		return
	}
	f.Checked++
	for _, r := range ruling {
		if excess(w, r, c.Opened, w.UsageOf(r).Grown, nil) == "" {
			return // it fits even if all pods count
		}
	}
	at := c.Write.Received
	if at.IsZero() {
		at = c.Write.Time
	}
	growths := w.Growths(w.Seen(at, *w.Options.PodLag))
	why := ""
	for _, r := range ruling {
		broken := excess(w, r, c.Opened, w.UsageOf(r).Above(growths), growths)
		if broken == "" {
			return
		}
		if why == "" && excess(w, r, c.Opened, nil, nil) == "" {
			why = broken
		}
	}
	if why != "" {
		f.fail("over-limit-by-pods", c.Write.Moment(), c.Opened, "%s", why)
	}
}
