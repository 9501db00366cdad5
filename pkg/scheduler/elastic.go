package scheduler

import (
	"slices"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// A unit may be elastic: it can be admitted with fewer pods than it requests. While it waits, its Demand is the
// least with which it can start, and everything is decided by that: its shape, its place in the tournament, what
// it lacks, and for what others are evicted. In the round in which it is admitted, it then gets as many more pods
// as fit, up to its count. Nobody is evicted for these, and units that are owed what they request go before.
//
// A unit for which others were evicted because it was owed the room borrows nothing for more pods. Its victims are not
// queued again yet, and may be owed what it would borrow: they would be evicted in turns.

// Elastic describes an elastic unit. The Demand of the Unit is the one with all pods. An Elastic must not be
// changed.
type Elastic struct {
	// PodSet is the name of the pod set of which fewer pods may start.
	PodSet string
	// Min is the least number of pods of the pod set, from 1, and Count is the full number.
	Min, Count int32
	// Granted is the number of pods with which a unit was admitted that holds quota; 0 if it is Count.
	Granted int32
	// Pod is what each pod requests, and at most what the whole unit requests divided by Count.
	Pod resources.Vector

	// full is what is requested with Count pods, and sized the number of pods of which the Demand is.
	full  resources.Vector
	sized int32
}

// pods returns the number of pods of an elastic unit that holds quota.
func (e *Elastic) pods() int32 {
	if e.Granted <= 0 {
		return e.Count
	}
	return min(e.Granted, e.Count)
}

// requests returns what is requested with n pods of the pod set, which are at most Count.
func (e *Elastic) requests(n int32) resources.Vector {
	missing := int64(e.Count - n)
	if missing <= 0 || len(e.Pod) == 0 {
		return e.full
	}
	requests := slices.Clone(e.full)
	for i, a := range requests {
		if each, _ := e.Pod.Get(a.ID); each > 0 {
			requests[i].Value = max(a.Value-min(each, a.Value/int64(e.Count))*missing, 0)
		}
	}
	return requests
}

// same reports whether both describe the same unit, whatever they were granted.
func (e *Elastic) same(other *Elastic) bool {
	return e.PodSet == other.PodSet && e.Min == other.Min && e.Count == other.Count && e.Pod.Equal(other.Pod) && e.full.Equal(other.full)
}

// own returns the Facts with an Elastic of their own, which knows the full request.
func (f Facts) own() Facts {
	if f.Elastic != nil {
		e := *f.Elastic
		e.full, e.sized = f.Demand.Requests, e.Count
		f.Elastic = &e
	}
	return f
}

// whole returns the Demand with all pods.
func (u *unit) whole() quota.Demand {
	d := u.Demand
	if u.Elastic != nil {
		d.Requests = u.Elastic.full
	}
	return d
}

// keepGrant takes over what the unit was granted by an admission that is not confirmed. It reports whether the
// unit requests the same as before.
func (u *unit) keepGrant(now *Facts) (same bool) {
	was, is := u.Elastic, now.Elastic
	if was == nil || is == nil {
		return was == nil && is == nil && now.Demand.Equal(u.Demand)
	}
	if u.assumed && now.Phase == Waiting {
		is.Granted = was.Granted
	}
	return was.same(is) && now.Demand.Preemptible == u.Demand.Preemptible
}

// resize updates the Demand of an elastic unit: a unit that holds no quota requests the least.
func (u *unit) resize() {
	e := u.Elastic
	if e == nil {
		return
	}
	want := e.Min
	if u.holdsQuota() {
		want = e.pods()
	} else {
		e.Granted = 0
	}
	if e.sized != want {
		u.Demand.Requests, e.sized = e.requests(want), want
	}
}

// grant sets the number of pods with which an elastic unit is admitted.
func (u *unit) grant(n int32) {
	u.Elastic.Granted = n
	if n == u.Elastic.Count {
		u.Elastic.Granted = 0
	}
	u.resize()
}

// Grant is the number of pods of a pod set with which a unit is admitted, if that is not the full number.
type Grant struct {
	PodSet string
	Count  int32
}

// granted returns with how many pods the unit is admitted.
func (u *unit) granted() Grant {
	if u.Elastic == nil || u.Elastic.pods() == u.Elastic.Count {
		return Grant{}
	}
	return Grant{PodSet: u.Elastic.PodSet, Count: u.Elastic.pods()}
}

// growing is an elastic unit that was admitted in this round.
type growing struct {
	*unit
	// reclaimed is whether it was owed room that was made for it.
	reclaimed bool
}

// admitLeast begins the admission of an elastic unit, which may grow until the end of the round. c is its claim until
// now, if it has one.
func (s *Scheduler) admitLeast(u *unit, c *claim) {
	if u.Elastic == nil {
		return
	}
	u.grant(u.Elastic.Min)
	if u.Elastic.Min < u.Elastic.Count {
		s.newest = growing{u, c != nil && c.owed}
	}
}

// growNewest gives the unit that was admitted last as many more pods as fit.
func (s *Scheduler) growNewest() {
	if u := s.newest; u.unit != nil {
		s.newest = growing{}
		s.growing = append(s.growing, u)
		s.grow(u)
	}
}

// growAll does the same at the end of a round for all units that were admitted in it, in the order of their
// admission: nobody competes with them any more. It reports whether any has grown.
func (s *Scheduler) growAll() (grown bool) {
	for _, u := range s.growing {
		grown = s.grow(u) || grown
	}
	return grown
}

// grow gives a unit that was admitted in this round as many more pods as fit. It reports whether there are any.
func (s *Scheduler) grow(u growing) bool {
	if u.gone || !u.assumed || !u.write.wanted.admits() || u.queue == nil || u.charged == nil || u.Elastic.Granted == 0 {
		return false // it has all pods, or the decision was withdrawn
	}
	most := s.mostPods(u)
	if most == u.Elastic.pods() {
		return false
	}
	u.grant(most)
	s.chargeUnit(u.unit)
	return true
}

// mostPods returns the greatest number of pods with which the unit, which is charged, fits. Room that is planned
// for others is kept from it. Nothing is borrowed while others are about to be tried that are owed it.
func (s *Scheduler) mostPods(u growing) int32 {
	group, charged, e := u.queue.Group, u.charged.group, u.Elastic
	own, competes := quota.Branch{Node: group.Nodes()[0]}, s.competition(u.queue)
	without := quota.Charge{Demand: quota.Demand{Preemptible: u.Demand.Preemptible}, Pods: u.charged.Pods}
	charged.Uncharge(&u.charged.Charge)
	if !without.Empty() {
		charged.Charge(&without)
	}
	fits := func(n int32) bool {
		d := quota.Demand{Requests: e.requests(n), Preemptible: u.Demand.Preemptible}
		owed := group.Owed(d, own)
		return group.Fits(d) == nil && (!u.queue.branch.Own && owed || !competes(d)) && (owed || !u.reclaimed)
	}
	least, most := e.pods(), e.Count
	if fits(most) {
		least = most
	}
	for least < most { // least is granted, and most is the greatest number that may fit
		if middle := least + (most-least+1)/2; fits(middle) {
			least = middle
		} else {
			most = middle - 1
		}
	}
	if !without.Empty() {
		charged.Uncharge(&without)
	}
	charged.Charge(&u.charged.Charge)
	return least
}

// competition returns a function that reports whether a demand of the queue would borrow what others are about to
// try that are owed it. They are sought only if it is called.
func (s *Scheduler) competition(q *queueState) func(quota.Demand) bool {
	var branches []quota.Branch
	sought := false
	return func(d quota.Demand) bool {
		if !sought {
			branches, sought = s.tournament.owedAgainst(q), true
		}
		return slices.ContainsFunc(branches, func(b quota.Branch) bool { return !q.Group.Owed(d, b) })
	}
}

// owedAgainst returns the branches of the queue against whose siblings others are about to try an item that they
// are owed.
func (t *tournament) owedAgainst(q *queueState) (branches []quota.Branch) {
	for b := q.branch; b.above != &t.root; b = b.above {
		if slices.ContainsFunc(b.above.below.All(), func(other *branch) bool { return other != b && other.isOwedAny() }) {
			branches = append(branches, b.Branch)
		}
	}
	return branches
}

// isOwedAny reports whether a queue of the branch is about to try an item that it is owed against the siblings of the
// branch.
func (b *branch) isOwedAny() bool {
	if b.below == nil {
		return b.owed
	}
	return slices.ContainsFunc(b.competing(nil), func(q *queueState) bool { return q.Group.Owed(q.tried.Shape().Demand, b.Branch) })
}
