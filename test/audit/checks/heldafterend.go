package checks

import (
	"container/list"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// recheck is how often job-extensions checks what is left of a job that is gone.
const recheck = 10 * time.Second

// heldAfterEnd measures the time between the end of a job and the end of its unit. A unit whose job is
// gone may show that pods are left; it holds quota until they are gone.
type heldAfterEnd struct {
	kept  map[string]bool          // units that have shown that pods are left
	late  map[string]*list.Element // by unit; nil once reported
	order *list.List               // of *overdue, the oldest first
}

type overdue struct {
	unit  *model.Unit
	job   *model.Job
	since model.Moment
	phase string // of the unit at that time
}

func newHeldAfterEnd() inspector {
	return &heldAfterEnd{kept: map[string]bool{}, late: map[string]*list.Element{}, order: list.New()}
}

func (h *heldAfterEnd) see(w *model.World, c *model.Change, f *findings) {
	h.expire(w, c.Write.Received, f) // it was stored at that time or later
	for _, j := range []*model.Job{c.Job, w.RootOf(c.Job)} {
		if j != nil {
			h.follow(j, c.Write.Moment())
		}
	}
	if c.Unit != nil {
		h.seeUnit(w, c, f)
	}
}

// follow records the units that still hold quota after the end of their job.
func (h *heldAfterEnd) follow(j *model.Job, now model.Moment) {
	since := j.Ended
	if since.IsZero() {
		since = j.Gone
	}
	for _, u := range j.Units {
		_, known := h.late[u.UID]
		switch {
		case since.IsZero() || !u.Facts.Holds():
			h.forget(u)
		case u.Facts.PodsRemain() && podsLeft(j):
			h.forget(u)
			h.kept[u.UID] = true
		case known:
		case h.kept[u.UID]:
			now.Time = now.Time.Add(recheck)
			h.add(&overdue{u, j, now, u.Facts.Phase})
		default:
			h.add(&overdue{u, j, since, u.Facts.Phase})
		}
	}
}

// podsLeft reports whether pods of a job that is gone still exist.
func podsLeft(j *model.Job) bool {
	return !j.Gone.IsZero() && (len(j.Clusters) > 0 || slices.ContainsFunc(j.Pods, (*model.Pod).Live))
}

// add inserts in the order of time.
func (h *heldAfterEnd) add(o *overdue) {
	at := h.order.Back()
	for at != nil && at.Value.(*overdue).since.Time.After(o.since.Time) {
		at = at.Prev()
	}
	if at == nil {
		h.late[o.unit.UID] = h.order.PushFront(o)
		return
	}
	h.late[o.unit.UID] = h.order.InsertAfter(o, at)
}

// forget removes a unit, whether or not it was reported.
func (h *heldAfterEnd) forget(u *model.Unit) {
	if at := h.late[u.UID]; at != nil {
		h.order.Remove(at)
	}
	delete(h.late, u.UID)
}

func (h *heldAfterEnd) expire(w *model.World, now time.Time, f *findings) {
	for at := h.order.Front(); at != nil; at = h.order.Front() {
		o := at.Value.(*overdue)
		if now.Sub(o.since.Time) < *w.Options.Grace {
			return
		}
		h.order.Remove(at)
		h.late[o.unit.UID] = nil // reported once
		how := "ended"
		if o.job.Ended.IsZero() {
			how = "was deleted"
		}
		f.fail("held-after-end", o.since, o.unit, "%s %s, but the unit still held its quota (%s) %s later",
			o.job, how, o.phase, now.Sub(o.since.Time).Round(time.Millisecond))
	}
}

func (h *heldAfterEnd) seeUnit(w *model.World, c *model.Change, f *findings) {
	u, now, was := c.Unit, c.Unit.Facts, c.UnitWas
	if !u.Gone.IsZero() || !now.Holds() {
		h.forget(u)
		delete(h.kept, u.UID)
	}
	if was == nil || c.Same || !now.Ended() || was.Ended() || now.Row == nil {
		return
	}
	j := c.Job
	if j == nil || j.Facts == nil {
		f.NotChecked++
		return
	}
	f.Checked++
	switch {
	case j.Gone.IsZero() && j.Ended.IsZero() && !w.Deleting(j, c.Write.Time):
		f.fail("ended-too-early", c.Write.Moment(), u, "it is %s, but %s has not ended: %s", now.Phase, j, progress(j))
	case j.Facts.End != model.Going && string(j.Facts.End) != now.Phase:
		f.fail("wrong-end", c.Write.Moment(), u, "it is %s, but %s has %s", now.Phase, j, j.Facts.End)
	}
}

func progress(j *model.Job) string {
	switch {
	case j.Facts.End != model.Going && len(j.Clusters) > 0:
		return "its RayCluster still exists"
	case j.Facts.State != "":
		return "it is " + j.Facts.State
	}
	return "its status is empty"
}

func (h *heldAfterEnd) finish(w *model.World, f *findings) {
	h.expire(w, w.End, f)
	if n := h.order.Len(); n > 0 {
		f.NotChecked += n
		f.note("%d units still hold quota, but their jobs ended less than %s before the end of the log", n, *w.Options.Grace)
	}
}
