package audit

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
)

// claim is quota that is really in use, by one job or by a unit without one.
type claim struct {
	key    string
	unit   *unit // nil when a job was released that has none
	job    *job  // nil for a thing of the user's own
	opened Moment
	// dequeues counts how often a unit became Dequeued in this claim.
	dequeues int
	asked    amounts
	place    place
}

// place is by what the node is found that a claim is charged to.
type place struct {
	namespace, quotaName string
	// path of the group that released the unit, by the unit's own status.
	path string
}

func (c *claim) String() string {
	if c.job != nil {
		return c.job.String()
	}
	return c.unit.String()
}

// claim opens and closes the claims that a change bears on.
func (w *world) claim(c *change) {
	if c.unit != nil {
		w.claimUnit(c)
	}
	if c.released && c.w.User == w.options.Extensions && w.claims[c.job.uid] == nil {
		w.open(c, c.job.uid, anyUnit(c.job))
	}
	for _, j := range []*job{c.job, w.rootOf(c.job)} {
		if j == nil {
			continue
		}
		if held := w.claims[j.uid]; held != nil && w.mayClose(j) {
			w.close(c, held)
		}
	}
}

func (w *world) claimUnit(c *change) {
	u := c.unit
	key := u.uid
	if c.job != nil {
		key = c.job.uid
	}
	if early := w.claims[u.uid]; early != nil && key != u.uid {
		// Its job was not known when the claim opened.
		delete(w.claims, u.uid)
		early.key, early.job = key, c.job
		w.claims[key] = early
	}
	held := w.claims[key]
	if held != nil && held.unit == u {
		w.recharge(held)
	}
	switch {
	case u.gone.IsZero() && u.facts.holds() && !c.unitWas.holds() && c.unitWas != nil:
		if held == nil {
			held = w.open(c, key, u)
		}
	case c.job == nil && held != nil && (!u.gone.IsZero() || !u.facts.holds()):
		w.close(c, held)
		return
	case c.unitWas == nil && u.facts.holds() && held == nil:
		// It held quota when the log began: not an admission, but in use.
		held = w.open(c, key, u)
		c.opened = nil
	}
	if held != nil && u.facts.phase == dequeued && (c.unitWas == nil || c.unitWas.phase != dequeued) {
		held.dequeues++
	}
}

// mayClose tells whether a job's quota is really free: it has ended, is gone, or
// is suspended and no unit of its holds quota.
func (w *world) mayClose(j *job) bool {
	if !j.gone.IsZero() || !j.ended.IsZero() {
		return true
	}
	if j.facts == nil || !j.facts.suspended {
		return false
	}
	for _, u := range j.units {
		if u.facts.holds() {
			return false
		}
	}
	return true
}

func (w *world) open(c *change, key string, u *unit) *claim {
	held := &claim{key: key, unit: u, job: c.job, opened: c.w.moment(), asked: amounts{}}
	w.claims[key] = held
	held.asked, held.place = demand(held)
	for _, r := range w.forest.reigns {
		if r.usage != nil {
			r.usage.add(held, 1)
		}
	}
	c.opened = held
	return held
}

func (w *world) close(c *change, held *claim) {
	delete(w.claims, held.key)
	for _, r := range w.forest.reigns {
		if r.usage != nil {
			r.usage.add(held, -1)
		}
	}
	c.closed = append(c.closed, held)
}

// recharge follows a unit whose demand or place has changed.
func (w *world) recharge(held *claim) {
	asked, place := demand(held)
	if place == held.place && asked.differences(held.asked, "", "") == "" {
		return
	}
	for _, r := range w.forest.reigns {
		if r.usage != nil {
			r.usage.add(held, -1)
		}
	}
	held.asked, held.place = asked, place
	for _, r := range w.forest.reigns {
		if r.usage != nil {
			r.usage.add(held, 1)
		}
	}
}

func demand(held *claim) (amounts, place) {
	var at place
	asked := amounts{}
	if held.unit != nil {
		at = place{held.unit.namespace, held.unit.facts.quotaName, held.unit.facts.quota}
		asked = held.unit.facts.total
	}
	if held.job != nil {
		at.namespace = held.job.namespace
		if at.quotaName == "" && held.job.facts != nil {
			at.quotaName = held.job.facts.quotaName
		}
	}
	return asked, at
}

// anyUnit is the unit of a job, the first by UID when it has several.
func anyUnit(j *job) *unit {
	var first *unit
	for _, u := range j.units {
		if first == nil || strings.Compare(u.uid, first.uid) < 0 {
			first = u
		}
	}
	return first
}

// usage is how much the open claims take of each node of one tree.
type usage struct {
	tree  *tree
	taken map[*node]amounts
	nodes map[place]*node
}

// usageOf counts the open claims under a tree.
func (w *world) usageOf(r *reign) *usage {
	if r.usage == nil {
		r.usage = &usage{tree: r.tree, taken: map[*node]amounts{}, nodes: map[place]*node{}}
		for _, held := range w.claims {
			r.usage.add(held, 1)
		}
	}
	return r.usage
}

// node is where a place is charged: at its group or, where the tree has none for
// it any more, at the nearest node that is left of the group that it came by. So
// it still counts in all that it shares with others, of the root at least.
func (u *usage) node(at place) *node {
	n := u.nodes[at]
	if n == nil {
		var err error
		if n, err = u.tree.group(at.namespace, at.quotaName); err != nil {
			n = u.tree.nearest(at.path)
		}
		u.nodes[at] = n
	}
	return n
}

// add charges a claim, or takes it back when times is -1.
func (u *usage) add(held *claim, times int64) {
	for n := u.node(held.place); n != nil; n = n.parent {
		if u.taken[n] == nil {
			u.taken[n] = amounts{}
		}
		u.taken[n].addTimes(held.asked, times)
		u.taken[n].addTimes(amounts{maxJobs: big.NewInt(1)}, times)
	}
}

// holders names the claims under a node, the latest first.
func (w *world) holders(u *usage, n *node, except *claim) []string {
	var list []*claim
	for _, held := range w.claims {
		if held == except {
			continue
		}
		for at := u.node(held.place); at != nil; at = at.parent {
			if at == n {
				list = append(list, held)
			}
		}
	}
	slices.SortFunc(list, func(a, b *claim) int {
		return cmp.Or(cmp.Compare(b.opened.Revision, a.opened.Revision), cmp.Compare(a.key, b.key))
	})
	var names []string
	for _, held := range list {
		names = append(names, held.String())
	}
	return names
}
