package scheduler

import (
	"slices"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// A unit can be elastic: it can be admitted with fewer pods than it requests. While it waits, its Demand is the least
// that it can start with, and all decisions use that: its shape, its place in the tournament, what it lacks, and who is
// evicted for it. In the round in which it is admitted, it then gets as many more pods as fit, up to its count. No unit
// is evicted for these extra pods, and units that are owed what they request come first.
//
// If others were evicted for an elastic unit because it was owed the room, it does not borrow for extra pods. Its
// victims are not queued again yet and might be owed what it would borrow, so they would evict each other in turns.

// Elastic describes an elastic unit. The Demand of a Unit includes all pods. An Elastic must not be changed.
type Elastic struct {
	// PodSet is the name of the pod set that can start with fewer pods.
	PodSet string
	// Min is the least number of pods of the pod set, from 1, and Count is the full number.
	Min, Count int32
	// Granted is the number of pods that a unit that holds quota was admitted with; 0 if it is Count.
	Granted int32
	// Pod is what each pod requests. It is at most the request of the whole unit divided by Count.
	Pod resources.Vector

	// full is the request with Count pods. sized is the number of pods in the present Demand.
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

// requests returns the request with n pods of the pod set, at most Count.
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

// same reports whether both describe the same unit, no matter what was granted.
func (e *Elastic) same(other *Elastic) bool {
	return e.PodSet == other.PodSet && e.Min == other.Min && e.Count == other.Count && e.Pod.Equal(other.Pod) && e.full.Equal(other.full)
}

// own returns the Facts with its own Elastic, which knows the full request.
func (f Facts) own() Facts {
	if f.Elastic != nil {
		e := *f.Elastic
		e.full, e.sized = f.Demand.Requests, e.Count
		f.Elastic = &e
	}
	return f
}

// Whole returns the demand of a unit with all pods. The unit is in a core, or in its View. It need not be elastic.
func (e *Elastic) Whole(d quota.Demand) quota.Demand {
	if e != nil {
		d.Requests = e.full
	}
	return d
}

// keepGrant applies the grant of an unconfirmed admission to the newer version. It reports whether the request is the
// same as before.
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

// resize updates the Demand of an elastic unit. A unit that holds no quota requests the least that it can start with.
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

// grant sets the number of pods that an elastic unit is admitted with.
func (u *unit) grant(n int32) {
	u.Elastic.Granted = n
	if n == u.Elastic.Count {
		u.Elastic.Granted = 0
	}
	u.resize()
}

// Grant is the number of pods of a pod set that a unit is admitted with, if it is not the full number.
type Grant struct {
	PodSet string
	Count  int32
}

// granted returns the Grant of the unit.
func (u *unit) granted() Grant {
	if u.Elastic == nil || u.Elastic.pods() == u.Elastic.Count {
		return Grant{}
	}
	return Grant{PodSet: u.Elastic.PodSet, Count: u.Elastic.pods()}
}

// growing is an elastic unit that was admitted in this round.
type growing struct {
	*unit
	// reclaimed is whether others were evicted for the unit because it was owed their room.
	reclaimed bool
}

// admitLeast begins the admission of an elastic unit, which can grow until the end of the round. c is the claim that
// it had, if any.
func (s *Scheduler) admitLeast(u *unit, c *claim) {
	if u.Elastic == nil {
		return
	}
	u.grant(u.Elastic.Min)
	if u.Elastic.Min < u.Elastic.Count {
		s.newest = growing{u, c != nil && c.owed}
	}
}

// growNewest gives the last admitted unit as many more pods as fit.
func (s *Scheduler) growNewest() {
	if u := s.newest; u.unit != nil {
		s.newest = growing{}
		s.growing = append(s.growing, u)
		s.grow(u)
	}
}

// growAll does the same at the end of a round for all units that were admitted in it, in that order. By then, no unit
// competes with them. It reports whether any has grown.
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

// mostPods returns the largest number of pods that the charged unit fits with. It does not use room that is planned or
// booked for others, and does not borrow what is owed to units that are about to be tried.
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
		return group.Fits(d) == nil && (!u.queue.branch.Own && owed || !competes(d)) && (owed || !u.reclaimed) && s.delays(u.queue, u.unit, d, s.meters.now) == nil
	}
	least, most := e.pods(), e.Count
	if fits(most) {
		least = most
	}
	for least < most { // least is granted, and most is the largest number that can fit
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

// competition returns a function that reports whether a demand of the queue would borrow quota that is owed to units
// that are about to be tried. These units are only looked up when it is called.
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

// owedAgainst returns the branches of the queue with siblings that are about to try an item that they are owed.
func (t *tournament) owedAgainst(q *queueState) (branches []quota.Branch) {
	for b := q.branch; b.above != &t.root; b = b.above {
		if slices.ContainsFunc(b.above.below.All(), func(other *branch) bool { return other != b && other.isOwedAny() }) {
			branches = append(branches, b.Branch)
		}
	}
	return branches
}

// isOwedAny reports whether a queue of the branch is about to try an item that it is owed against the branch's
// siblings.
func (b *branch) isOwedAny() bool {
	if b.below == nil {
		return b.owed
	}
	return slices.ContainsFunc(b.competing(nil), func(q *queueState) bool { return q.Group.Owed(q.tried.Shape().Demand, b.Branch) })
}
