package model

import (
	"cmp"
	"math/big"
	"slices"
	"time"
)

// Charge is what a job is charged in a quota tree: resource by resource the greater of what it was
// admitted with and what its pods request. After its claim was closed, the pods that are left are
// charged where the claim was.
//
// A pod counts from its creation until it has ended or is gone, or its grace period is over. Not known
// are the requests of pods that are older than the log or were resized, and the amounts that only rules
// in the configuration of the programs add to a request, such as types of devices. They count as 0
// for pods; what was admitted contains them.
type Charge struct {
	owner string // the UID of the job; empty for the orphans of a namespace
	Job   *Job   // nil if it is not shown
	Unit  *Unit  // nil if the job had none
	Claim *Claim // nil after it was closed
	place place
	pods  map[*Pod]struct{}
	sum   Amounts // of the requests of the pods
	grown grown   // as it is counted in each Usage
}

// grown is by how much the requests of pods are above what was admitted, and where they are charged.
type grown struct {
	place   place
	orphans bool // of a namespace
	above   Amounts
}

func (c *Charge) String() string {
	switch {
	case c.Job != nil:
		return c.Job.String()
	case c.Unit != nil:
		return c.Unit.String()
	}
	return "orphans of namespace " + c.place.Namespace
}

// claimed charges a claim that was opened or has changed.
func (w *World) claimed(held *Claim) {
	owner := held.owner()
	if owner == "" {
		return
	}
	c := w.charges[owner]
	added := c == nil
	switch {
	case added:
		c = &Charge{owner: owner, pods: map[*Pod]struct{}{}, sum: Amounts{}}
		w.charges[owner] = c
	case c.Claim != nil && c.Claim != held:
		return // the pods count only for one of several units
	}
	c.Claim, c.Job, c.place = held, held.Job, held.Place
	if held.Unit != nil {
		c.Unit = held.Unit
	}
	if added {
		for _, p := range w.ownedBy[owner] {
			w.chargePod(p)
		}
		delete(w.ownedBy, owner)
		if orphans := w.orphans[c.place.Namespace]; orphans != nil {
			for p := range orphans.pods {
				w.chargePod(p)
			}
		}
	}
	w.compare(c)
}

// returned uncharges a claim that was closed.
func (w *World) returned(held *Claim) {
	c := w.charges[held.owner()]
	if c == nil || c.Claim != held {
		return
	}
	c.Claim = nil
	w.compare(c)
	if held.Job != nil {
		return
	}
	for _, other := range w.Claims {
		if other.Job == nil && other.owner() == c.owner {
			w.claimed(other)
		}
	}
}

// compare updates by how much the pods request more than was admitted.
func (w *World) compare(c *Charge) {
	now := grown{c.place, c.owner == "", c.beyond(c.sum)}
	for _, r := range w.Forest.Reigns {
		if r.usage != nil {
			r.usage.grow(c.grown, -1)
			r.usage.grow(now, 1)
		}
	}
	if c.grown = now; len(now.above) > 0 {
		w.grown[c] = struct{}{}
	} else {
		delete(w.grown, c)
	}
}

// grow adds to Grown, or subtracts if times is -1.
func (u *Usage) grow(g grown, times int64) {
	if len(g.above) == 0 {
		return
	}
	for _, n := range u.nodesOf(g) {
		if u.Grown[n] == nil {
			u.Grown[n] = Amounts{}
		}
		u.Grown[n].AddTimes(g.above, times)
	}
}

// beyond returns by how much requests are above what was admitted.
func (c *Charge) beyond(requests Amounts) Amounts {
	above := Amounts{}
	for name, n := range requests {
		rest := new(big.Int).Set(n)
		if c.Claim != nil {
			rest.Sub(rest, c.Claim.Asked.Get(name))
		}
		if rest.Sign() > 0 {
			above[name] = rest
		}
	}
	return above
}

// followPod charges a pod that was created, and uncharges one that has ended or is gone.
func (w *World) followPod(p *Pod, created bool) {
	if w.Options.ResourceQuota {
		return
	}
	w.chargePod(p)
	if !created {
		return
	}
	// A job nearer to the pod may be admitted later.
	for _, uid := range w.objectsOf(p) {
		if p.charge != nil && p.charge.owner == uid {
			return
		}
		w.ownedBy[uid] = append(w.ownedBy[uid], p)
	}
}

func (w *World) chargePod(p *Pod) {
	to := w.chargeOf(p)
	from := p.charge
	if from == to {
		return
	}
	p.charge = to
	if from != nil {
		delete(from.pods, p)
		from.sum.AddTimes(p.Requests, -1)
		w.compare(from)
	}
	if to != nil {
		p.charged = true
		to.pods[p] = struct{}{}
		to.sum.AddTimes(p.Requests, 1)
		w.compare(to)
	}
}

// chargeOf returns what a pod counts for: the nearest job to which it belongs and that was admitted
// at some time; nil if it does not count.
func (w *World) chargeOf(p *Pod) *Charge {
	if !p.Live() || p.resized || p.unclear {
		return nil
	}
	for _, uid := range w.objectsOf(p) {
		if c := w.charges[uid]; c != nil && c.lasts() {
			return c
		}
		delete(w.charges, uid)
	}
	if w.isOrphan(p) && p.charged && p.label != "" {
		return w.orphansOf(p)
	}
	return nil
}

func (w *World) isOrphan(p *Pod) bool { return !p.owned && w.owners[p.UID] != "" }

// lasts reports whether the job has quota, a unit, or pods that are left of it. Pods that are created
// later no longer count.
func (c *Charge) lasts() bool { return c.known() || len(c.pods) > 0 }

// known reports whether the job has quota or a unit that was admitted.
func (c *Charge) known() bool {
	return c.Claim != nil || c.Unit.Exists()
}

// objectsOf returns the UIDs of a pod and of the objects that it belongs to, the nearest first.
func (w *World) objectsOf(p *Pod) []string {
	var all []string
	for uid := p.UID; uid != "" && len(all) < maxOwners; uid = w.above(uid) {
		all = append(all, uid)
	}
	return all
}

// orphansOf returns what an orphan counts for whose unit is not known: the job with the name in its
// label, or its namespace.
func (w *World) orphansOf(p *Pod) *Charge {
	var c *Charge
	for _, other := range w.charges {
		if other.Job != nil && other.Job.Namespace == p.Namespace && other.Job.name == p.label && other.lasts() && (c == nil || other.owner < c.owner) {
			c = other
		}
	}
	if c != nil {
		return c
	}
	if c = w.orphans[p.Namespace]; c == nil {
		c = &Charge{place: place{Namespace: p.Namespace}, pods: map[*Pod]struct{}{}, sum: Amounts{}}
		w.orphans[p.Namespace] = c
	}
	return c
}

// followDecider forgets the units and the objects between jobs and pods that are gone if another process
// decides from now on. That process never saw them, and knows the job of a pod only by what the pod names now:
// existing owners, and labels.
func (w *World) followDecider(write *Write) {
	lease, isLease := write.Body.(*LeaseFacts)
	switch {
	case isLease && write.Name == deciderLease && lease.Holder != "" && lease.Holder != w.leader:
		w.leader = lease.Holder
	case write.Resource == "queueunits" && write.User == w.Options.Controller && write.Instance != "" && write.Instance != w.decider:
		w.decider = write.Instance
	default:
		return
	}
	for uid, c := range w.charges {
		if !c.known() {
			delete(w.charges, uid)
		}
		for p := range c.pods {
			p.unclear = w.severed(p, uid) || w.isOrphan(p) && p.label == ""
			w.chargePod(p)
		}
	}
}

// severed reports whether an object between a pod and its job is gone.
func (w *World) severed(p *Pod, job string) bool {
	for _, uid := range w.objectsOf(p) {
		if uid == job {
			return false
		}
		if j := w.Jobs[uid]; j != nil && !j.Gone.IsZero() {
			return true
		}
		if driver := w.Pods[uid]; driver != nil && !driver.Gone.IsZero() {
			return true
		}
	}
	return false
}

// followUnclear stops charging the pods that a failed write shows to be gone, or may have deleted.
func (w *World) followUnclear(write *Write) {
	if write.Resource != "pods" || write.Verb == "create" {
		return
	}
	lost := (write.Code == 0 || write.Code >= 500) && write.Subresource == ""
	switch p := w.podNames[podName{write.Namespace, write.Name}]; {
	case write.Verb == "deletecollection" && lost:
		for _, p := range w.Pods {
			if p.Namespace == write.Namespace {
				w.unclear(p)
			}
		}
	case p != nil && (write.Code == 404 || write.Verb == "delete" && lost):
		w.unclear(p)
	}
}

func (w *World) unclear(p *Pod) {
	p.unclear = true
	w.chargePod(p)
}

type podName struct{ namespace, name string }

// Growth is what a job is charged because of its pods, in addition to what it was admitted with.
type Growth struct {
	*Charge
	Above Amounts
}

// Growths returns what jobs are charged because of the pods for which counts is true, ordered by name.
func (w *World) Growths(counts func(*Pod) bool) []Growth {
	var all []Growth
	for c := range w.grown {
		visible := Amounts{}
		for p := range c.pods {
			if counts(p) {
				visible.AddTimes(p.Requests, 1)
			}
		}
		if above := c.beyond(visible); len(above) > 0 {
			all = append(all, Growth{c, above})
		}
	}
	slices.SortFunc(all, func(a, b Growth) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.owner, b.owner))
	})
	return all
}

// Nodes returns the nodes that a job is charged to, the nearest to its group first.
func (u *Usage) Nodes(c *Charge) []*Node { return u.nodesOf(c.grown) }

// nodesOf is Nodes. Orphans of a namespace without a group are charged to none.
func (u *Usage) nodesOf(g grown) []*Node {
	if g.orphans {
		if _, err := u.Tree.Group(g.place.Namespace, ""); err != nil || g.place.Namespace == treeNamespace {
			return nil
		}
	}
	var nodes []*Node
	for n := u.Node(g.place); n != nil; n = n.Parent {
		nodes = append(nodes, n)
	}
	return nodes
}

// Above returns the sum of the growths at each node.
func (u *Usage) Above(all []Growth) map[*Node]Amounts {
	sums := map[*Node]Amounts{}
	for _, g := range all {
		for _, n := range u.Nodes(g.Charge) {
			if sums[n] == nil {
				sums[n] = Amounts{}
			}
			sums[n].AddTimes(g.Above, 1)
		}
	}
	return sums
}

// Seen returns whether the controller must count a pod at a time; see unseen.
func (w *World) Seen(at time.Time, lag time.Duration) func(*Pod) bool {
	return func(p *Pod) bool { return !w.unseen(p, at, lag) }
}

// Lasting returns whether a pod counts at a time and is not being deleted.
func (w *World) Lasting(at time.Time) func(*Pod) bool {
	return func(p *Pod) bool { return !p.facts.deleting && !w.unseen(p, at, 0) }
}

// unseen reports whether the controller need not count a pod at a time: it was created less than lag
// before, its grace period is over, or its removal has begun.
func (w *World) unseen(p *Pod, at time.Time, lag time.Duration) bool {
	fresh := !p.Created.IsZero() && at.Sub(p.Created.Time) < lag
	leaves, leaving := w.leaving[p.UID]
	past := p.facts.until
	return fresh || !past.IsZero() && !at.Before(past) || leaving && leaves.Before(at)
}
