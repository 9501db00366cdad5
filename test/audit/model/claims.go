package model

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
)

// Claim is quota that is really in use by a job, or by a unit without a job.
type Claim struct {
	Key    string
	Unit   *Unit // nil if a job without a unit was released
	Job    *Job  // nil if the unit represents no job
	Opened Moment
	// Dequeues counts how often the unit became Dequeued in this claim.
	Dequeues int
	Asked    Amounts
	Place    place
}

// place has the fields that determine the node that a claim is charged to.
type place struct {
	Namespace, QuotaName string
	// path is the group that admitted the unit, from the unit's status.
	path string
}

func (c *Claim) String() string {
	if c.Job != nil {
		return c.Job.String()
	}
	return c.Unit.String()
}

// claim opens and closes the claims affected by a change.
func (w *World) claim(c *Change) {
	if c.Unit != nil {
		w.claimUnit(c)
	}
	if c.Released && c.Write.User == w.Options.Extensions && w.Claims[c.Job.UID] == nil {
		w.open(c, c.Job.UID, anyUnit(c.Job))
	}
	for _, j := range []*Job{c.Job, w.RootOf(c.Job)} {
		if j == nil {
			continue
		}
		if held := w.Claims[j.UID]; held != nil && w.mayClose(j) {
			w.close(c, held)
		}
	}
}

func (w *World) claimUnit(c *Change) {
	u := c.Unit
	key := u.UID
	if c.Job != nil {
		key = c.Job.UID
	}
	if early := w.Claims[u.UID]; early != nil && key != u.UID {
		// The claim was opened before its job was seen.
		delete(w.Claims, u.UID)
		early.Key, early.Job = key, c.Job
		w.Claims[key] = early
		w.claimed(early)
	}
	held := w.Claims[key]
	if held != nil && held.Unit == u {
		w.recharge(held)
	}
	switch {
	case u.Gone.IsZero() && u.Facts.Holds() && !c.UnitWas.Holds() && c.UnitWas != nil:
		if held == nil {
			held = w.open(c, key, u)
		}
	case c.Job == nil && held != nil && (!u.Gone.IsZero() || !u.Facts.Holds()):
		w.close(c, held)
		return
	case c.UnitWas == nil && u.Facts.Holds() && held == nil:
		// The unit held quota when the log began. This is no admission, but the quota is in use.
		held = w.open(c, key, u)
		c.Opened = nil
	}
	if held != nil && u.Facts.Phase == Dequeued && (c.UnitWas == nil || c.UnitWas.Phase != Dequeued) {
		held.Dequeues++
	}
}

// mayClose reports whether a job's quota is really free: the job has ended, was deleted, or has no unit that holds
// quota and is suspended, or has no pods and is being deleted or was unsuspended by hand: then it is to be queued again.
func (w *World) mayClose(j *Job) bool {
	if !j.Gone.IsZero() || !j.Ended.IsZero() {
		return true
	}
	if j.Facts == nil || !j.Facts.Suspended && !((j.Facts.Deleting || j.released.Before(j.Suspended)) && w.isPodless(j)) {
		return false
	}
	for _, u := range j.Units {
		if u.Facts.Holds() {
			return false
		}
	}
	return true
}

// isPodless reports whether no pod of the job exists that has not ended.
func (w *World) isPodless(j *Job) bool {
	held := w.Claims[j.UID]
	if held == nil {
		return true
	}
	c := w.charges[held.owner()]
	return c == nil || len(c.pods) == 0
}

func (w *World) open(c *Change, key string, u *Unit) *Claim {
	held := &Claim{Key: key, Unit: u, Job: c.Job, Opened: c.Write.Moment(), Asked: Amounts{}}
	w.Claims[key] = held
	held.Asked, held.Place = Demand(held)
	for _, r := range w.Forest.Reigns {
		if r.usage != nil {
			r.usage.add(held, 1)
		}
	}
	w.claimed(held)
	c.Opened = held
	return held
}

func (w *World) close(c *Change, held *Claim) {
	delete(w.Claims, held.Key)
	for _, r := range w.Forest.Reigns {
		if r.usage != nil {
			r.usage.add(held, -1)
		}
	}
	w.returned(held)
	c.Closed = append(c.Closed, held)
}

// recharge updates the claim of a unit whose request or place has changed.
func (w *World) recharge(held *Claim) {
	asked, place := Demand(held)
	if place == held.Place && asked.Differences(held.Asked, "", "") == "" {
		return
	}
	for _, r := range w.Forest.Reigns {
		if r.usage != nil {
			r.usage.add(held, -1)
		}
	}
	held.Asked, held.Place = asked, place
	for _, r := range w.Forest.Reigns {
		if r.usage != nil {
			r.usage.add(held, 1)
		}
	}
	w.claimed(held)
}

func Demand(held *Claim) (Amounts, place) {
	var at place
	asked := Amounts{}
	if held.Unit != nil {
		at = place{held.Unit.Namespace, held.Unit.Facts.quotaName, held.Unit.Facts.Quota}
		if !held.Unit.Facts.PodsRemain() { // otherwise only its pods count
			asked = held.Unit.Facts.Total
		}
	}
	if held.Job != nil {
		at.Namespace = held.Job.Namespace
		if at.QuotaName == "" && held.Job.Facts != nil {
			at.QuotaName = held.Job.Facts.quotaName
		}
	}
	return asked, at
}

// anyUnit returns the unit of a job, the first by UID if there are several.
func anyUnit(j *Job) *Unit {
	var first *Unit
	for _, u := range j.Units {
		if first == nil || strings.Compare(u.UID, first.UID) < 0 {
			first = u
		}
	}
	return first
}

// Usage is the sum of the open claims at each node of one tree. Grown is the most that pods can add to
// it, if all of them count; see Growths.
type Usage struct {
	Tree         *tree
	Taken, Grown map[*Node]Amounts
	nodes        map[place]*Node
}

// UsageOf returns the usage of a tree.
func (w *World) UsageOf(r *Reign) *Usage {
	if r.usage == nil {
		r.usage = &Usage{Tree: r.Tree, Taken: map[*Node]Amounts{}, Grown: map[*Node]Amounts{}, nodes: map[place]*Node{}}
		for _, held := range w.Claims {
			r.usage.add(held, 1)
		}
		for c := range w.grown {
			r.usage.grow(c.grown, 1)
		}
	}
	return r.usage
}

// Node returns the node that a place is charged to. That is its group or, if the tree has no group
// for it any more, the nearest remaining ancestor of the group that admitted it. So a claim always
// counts at the root at least.
func (u *Usage) Node(at place) *Node {
	n := u.nodes[at]
	if n == nil {
		var err error
		if n, err = u.Tree.Group(at.Namespace, at.QuotaName); err != nil {
			n = u.Tree.nearest(at.path)
		}
		u.nodes[at] = n
	}
	return n
}

// add charges a claim, or uncharges it if times is -1.
func (u *Usage) add(held *Claim, times int64) {
	for n := u.Node(held.Place); n != nil; n = n.Parent {
		if u.Taken[n] == nil {
			u.Taken[n] = Amounts{}
		}
		u.Taken[n].AddTimes(held.Asked, times)
		u.Taken[n].AddTimes(Amounts{MaxJobs: big.NewInt(1)}, times)
	}
}

// Holders lists the claims under a node, the latest first.
func (w *World) Holders(u *Usage, n *Node, except *Claim) []string {
	var list []*Claim
	for _, held := range w.Claims {
		if held == except {
			continue
		}
		for at := u.Node(held.Place); at != nil; at = at.Parent {
			if at == n {
				list = append(list, held)
			}
		}
	}
	slices.SortFunc(list, func(a, b *Claim) int {
		return cmp.Or(cmp.Compare(b.Opened.Revision, a.Opened.Revision), cmp.Compare(a.Key, b.Key))
	})
	var names []string
	for _, held := range list {
		names = append(names, held.String())
	}
	return names
}
