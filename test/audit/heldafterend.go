package audit

import (
	"container/list"
	"time"
)

// heldAfterEnd watches the time between the end of a job and that of its unit.
type heldAfterEnd struct {
	late  map[string]*list.Element // by unit; nil once it has been told
	order *list.List               // of *overdue, the oldest first
}

type overdue struct {
	unit  *unit
	job   *job
	since Moment
	phase string // of the unit, when that was seen
}

func newHeldAfterEnd() inspector {
	return &heldAfterEnd{late: map[string]*list.Element{}, order: list.New()}
}

func (h *heldAfterEnd) see(w *world, c *change, f *findings) {
	h.expire(w, c.w.Time, f)
	for _, j := range []*job{c.job, w.rootOf(c.job)} {
		if j != nil {
			h.follow(j)
		}
	}
	if c.unit != nil {
		h.seeUnit(c, f)
	}
}

// follow notes which units of a job still hold quota after its end.
func (h *heldAfterEnd) follow(j *job) {
	since := j.ended
	if since.IsZero() {
		since = j.gone
	}
	for _, u := range j.units {
		_, known := h.late[u.uid]
		switch {
		case since.IsZero() || !u.facts.holds():
			h.forget(u)
		case !known:
			h.late[u.uid] = h.order.PushBack(&overdue{u, j, since, u.facts.phase})
		}
	}
}

// forget also forgets what has been told.
func (h *heldAfterEnd) forget(u *unit) {
	if at := h.late[u.uid]; at != nil {
		h.order.Remove(at)
	}
	delete(h.late, u.uid)
}

func (h *heldAfterEnd) expire(w *world, now time.Time, f *findings) {
	for at := h.order.Front(); at != nil; at = h.order.Front() {
		o := at.Value.(*overdue)
		if now.Sub(o.since.Time) < *w.options.Grace {
			return
		}
		h.order.Remove(at)
		h.late[o.unit.uid] = nil // told once
		how := "ended"
		if o.job.ended.IsZero() {
			how = "was deleted"
		}
		f.fail("held-after-end", o.since, o.unit, "%s %s, but the unit still had its quota (%s) %s later",
			o.job, how, o.phase, now.Sub(o.since.Time).Round(time.Millisecond))
	}
}

func (h *heldAfterEnd) seeUnit(c *change, f *findings) {
	u, now, was := c.unit, c.unit.facts, c.unitWas
	if !u.gone.IsZero() || !now.holds() {
		h.forget(u)
	}
	if was == nil || c.same || !now.ended() || was.ended() || now.row == nil {
		return
	}
	j := c.job
	if j == nil || j.facts == nil {
		f.NotJudged++
		return
	}
	f.Judged++
	switch {
	case j.gone.IsZero() && j.ended.IsZero() && !j.facts.deleting:
		f.fail("ended-too-early", c.w.moment(), u, "it is %s, but %s has not ended: %s", now.phase, j, progress(j))
	case j.facts.end != going && string(j.facts.end) != now.phase:
		f.fail("wrong-end", c.w.moment(), u, "it is %s, but %s has %s", now.phase, j, j.facts.end)
	}
}

func progress(j *job) string {
	switch {
	case j.facts.end != going && len(j.clusters) > 0:
		return "its RayCluster exists"
	case j.facts.state != "":
		return "it is " + j.facts.state
	}
	return "its status says nothing"
}

func (h *heldAfterEnd) finish(w *world, f *findings) {
	h.expire(w, w.end, f)
	if n := h.order.Len(); n > 0 {
		f.NotJudged += n
		f.note("%d units hold quota whose jobs ended less than %s before the end of the log", n, *w.options.Grace)
	}
}
