package scheduler_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/oracle"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// rest stops jobs that are evicted for others until there are none.
func (w *world) rest() {
	w.t.Helper()
	for round := 0; ; round++ {
		w.after(2 * time.Minute)
		stopped := 0
		for _, key := range w.evicted() {
			if u := w.units[key]; u.Eviction.For != "" {
				w.write(key, stop)
				stopped++
			}
		}
		switch {
		case stopped > 0:
		case !w.isRoomKept():
			landed := len(w.landed)
			if w.after(10 * time.Second); len(w.landed) == landed { // otherwise, writes still have effects to come
				return
			}
		default:
			w.after(scheduler.DefaultEvictionTimeout) // until then, the room of units that are evicted for other reasons is kept
		}
		if round > 200 {
			w.t.Fatalf("there is no end of evictions: %s", w.story(12))
		}
	}
}

// isRoomKept reports whether room is kept for a unit that can start once the room is free.
func (w *world) isRoomKept() bool {
	for _, u := range w.units {
		if u.Phase == scheduler.Waiting && u.Reason == wellknown.ReasonPreempting && !w.awaitsPodsOfOthers(u) {
			return true
		}
	}
	return false
}

// story describes the last writes that landed.
func (w *world) story(most int) string {
	var lines []string
	for _, s := range w.landed[max(len(w.landed)-most, 0):] {
		lines = append(lines, fmt.Sprintf("%v %s %s %s", s.Kind, s.Key, s.Reason, s.EvictedFor))
	}
	return strings.Join(lines, "; ")
}

// isForOther reports whether a unit is evicted for another one.
func isForOther(write scheduler.Write) bool {
	return write.Reason == wellknown.ReasonPreempted || write.Reason == wellknown.ReasonReclaimed
}

// checkVictim verifies that a unit that is about to be evicted for another one can be.
func (w *world) checkVictim(write scheduler.Write) {
	if write.Kind != scheduler.Evict || !isForOther(write) {
		return
	}
	u := w.units[write.Key]
	if u == nil || u.Version != write.Version {
		return // the core does not know of a change yet, so the write will fail
	}
	exceeds := false
	if c := w.core.ChargeOf(write.Key); c != nil {
		exceeds = !c.Total().Equal(asked(u).Requests)
	}
	period := w.opts.MinRunTime
	if set := w.queueOf(u).Preemption.MinRunTime; set.Set {
		period = set.Value
	}
	since := u.DequeuedAt
	for _, job := range w.units { // growth counts from the start of its job
		if u.Growth && job.Owner == u.Owner && job.DequeuedAt.Before(since) {
			since = job.DequeuedAt
		}
	}
	switch {
	case !holds(u) || u.Unstoppable || u.Over || !u.Demand.Preemptible && !exceeds:
		w.t.Fatalf("unit %s may not be evicted: %+v", write.Key, u)
	case u.Phase != scheduler.Reserved && w.now.Before(since.Add(period)):
		w.t.Fatalf("unit %s is evicted %v after its start, and is protected for %v", write.Key, w.now.Sub(since), period)
	case write.Reason == wellknown.ReasonReclaimed && !w.treeOpts.Reclaim, write.Reason == wellknown.ReasonPreempted && !w.queueOf(u).Preemption.WithinQueue:
		w.t.Fatalf("unit %s is evicted for %s, which is switched off", write.Key, write.Reason)
	}
}

// expectNoRoomToMake verifies that in a world at rest no unit waits that evictions could make room for.
func expectNoRoomToMake(t *rapid.T, w *world) {
	charged := w.charged()
	var candidates []victim
	w.eachUnitCharge(charged, func(u *scheduler.Unit, g quota.Group, c *quota.Charge) {
		if holds(u) && !u.Evicted && !u.Stopped && !u.Over && !u.Unstoppable && (u.Demand.Preemptible || w.exceeds(u)) {
			candidates = append(candidates, victim{u, g, c})
		}
	})
	for _, key := range slices.Sorted(maps.Keys(w.units)) {
		u := w.units[key]
		group, refusal := charged.Place(u.Namespace(), u.QuotaName)
		set := w.queueOf(u)
		if u.Phase != scheduler.Waiting || u.Held != nil || refusal != nil || set.Stop != scheduler.NotStopped || w.missingCheck(u) != "" || w.awaitsPodsOfOthers(u) || w.now.Before(u.RequeueAt) {
			continue
		}
		o := w.oracle()
		r := o.Refuses(group.Path(), asked(u))
		if r == "" || isFinal(r) || r == wellknown.ReasonBorrowingPaused || w.policyOf(set).FrontOnly && w.front(o, group) != u {
			continue
		}
		if victims := w.lawfulVictims(charged, u, group, candidates); victims != nil {
			t.Fatalf("unit %s waits (%s) and %v could be evicted for it", key, u.Reason, victims)
		}
	}
}

// victim is a unit that can be evicted.
type victim struct {
	*scheduler.Unit
	group  quota.Group
	charge *quota.Charge
}

// mostCandidates is the number of candidates that are tried in all combinations.
const mostCandidates = 8

// lawfulVictims returns units that the laws of pkg/preemption allow to be evicted together for the claimant, which then
// fits; nil if there are none. It tries all combinations of the first candidates.
func (w *world) lawfulVictims(charged *tree.Tree, claimant *scheduler.Unit, to quota.Group, candidates []victim) []string {
	set := w.queueOf(claimant)
	isOwn := func(v victim) bool { return v.group.Path() == to.Path() }
	candidates = slices.DeleteFunc(slices.Clone(candidates), func(v victim) bool {
		if isOwn(v) {
			return !set.Preemption.WithinQueue || set.MaxPriority.Of(v.Priority) >= set.MaxPriority.Of(claimant.Priority)
		}
		return !w.treeOpts.Reclaim
	})
	if len(candidates) > 0 {
		w.sought++
	}
	c := claim{world: w, path: to.Path(), demand: asked(claimant), candidates: candidates[:min(len(candidates), mostCandidates)], reachable: map[uint]bool{}}
	c.oracle = w.oracleWithoutUnits(func(u *scheduler.Unit) bool {
		return slices.ContainsFunc(c.candidates, func(v victim) bool { return v.Unit == u })
	})
	c.others = c.oracle.Charged
	for i, v := range c.candidates {
		if isOwn(v) {
			c.own |= 1 << i
		}
	}
	for set := uint(1); set < 1<<len(c.candidates); set++ {
		if !c.fitsWithout(charged, to, set) || !c.isLawful(set) || c.without(set).Refuses(c.path, c.demand) != "" {
			continue
		}
		var keys []string
		for _, v := range c.of(set) {
			keys = append(keys, v.Key)
		}
		return keys
	}
	return nil
}

// claim is a waiting unit with the candidates. A set of candidates is a number with a bit for each.
type claim struct {
	*world
	path       string
	demand     quota.Demand
	candidates []victim
	// own are those of the queue of the unit. others is what is charged to all non-candidates.
	own       uint
	others    []oracle.Charged
	oracle    *oracle.Tree
	reachable map[uint]bool
}

func (c *claim) of(set uint) (victims []victim) {
	for i, v := range c.candidates {
		if set&(1<<i) != 0 {
			victims = append(victims, v)
		}
	}
	return victims
}

// without returns the tree without the set.
func (c *claim) without(set uint) *oracle.Tree {
	c.oracle.Charged = slices.Clone(c.others)
	for _, v := range c.of(^set) {
		c.oracle.Charged = append(c.oracle.Charged, oracle.Charged{Path: v.group.Path(), Charge: *v.charge})
	}
	return c.oracle
}

// fitsWithout asks the tree, which is faster than the oracle.
func (c *claim) fitsWithout(charged *tree.Tree, to quota.Group, set uint) bool {
	for _, v := range c.of(set) {
		v.group.Uncharge(v.charge)
		defer v.group.Charge(v.charge)
	}
	return to.Fits(c.demand) == nil
}

// isLawful reports whether the set can be evicted for the unit: those of its own queue first, then those of others.
func (c *claim) isLawful(set uint) bool {
	own := set & c.own
	if own != 0 && !c.keepsGuarantee(own) || set != own && !c.mayReclaim(own) {
		return false
	}
	return c.canBeReclaimed(own, set)
}

// mayReclaim reports whether the unit, without the set, is within the guarantee of its group and lacks only what that
// names.
func (c *claim) mayReclaim(set uint) bool {
	o := c.without(set)
	for _, place := range o.Lacking(c.path, c.demand) {
		if _, named := o.Guarantee(c.path, place.Resource); !named {
			return false
		}
	}
	return o.Within(oracle.Branch{Path: c.path}, c.demand)
}

// keepsGuarantee reports whether the group uses as much of its guarantee with the unit as with the set, or is owed all
// that the unit requests. Each member of the set must use something that the unit lacks.
func (c *claim) keepsGuarantee(set uint) bool {
	lacking := c.without(0).Lacking(c.path, c.demand)
	for _, v := range c.of(set) {
		if !slices.ContainsFunc(lacking, func(p oracle.Place) bool { return c.uses(v, p.Resource) }) {
			return false
		}
	}
	var before []*big.Int
	for id := range resources.ID(c.names.Len()) {
		before = append(before, c.without(0).Used(c.path, c.names.Name(id)))
	}
	after, borrows := c.without(set), false
	for _, a := range c.demand.Requests {
		name := c.names.Name(a.ID)
		_, named := after.Guarantee(c.path, name)
		borrows = borrows || a.Value > 0 && !named && name != quota.JobsResource
	}
	if !borrows && after.Within(oracle.Branch{Path: c.path}, c.demand) {
		return true
	}
	for id := range resources.ID(c.names.Len()) {
		due, named := after.Guarantee(c.path, c.names.Name(id))
		request, _ := c.demand.Requests.Get(id)
		with := after.Used(c.path, c.names.Name(id))
		if with.Add(with, big.NewInt(request)); named && with.Cmp(due) < 0 && with.Cmp(before[id]) < 0 {
			return false
		}
	}
	return true
}

func (c *claim) uses(v victim, resource string) bool {
	amount, _ := v.charge.Total().Get(c.names.ID(resource))
	return amount > 0
}

// canBeReclaimed reports whether the set can be taken one by one, each while its group has borrowed what the unit then
// lacks. Units in taken are already gone.
func (c *claim) canBeReclaimed(taken, set uint) bool {
	if set == taken {
		return true
	}
	can, known := c.reachable[set]
	if known {
		return can
	}
	for i, v := range c.candidates {
		before := set &^ (1 << i)
		if can || before == set || before|taken != before || !c.canBeReclaimed(taken, before) {
			continue
		}
		o := c.without(before)
		can = slices.ContainsFunc(o.Lacking(c.path, c.demand), func(p oracle.Place) bool {
			return c.uses(v, p.Resource) && slices.Contains(oracle.Chain(v.group.Path()), p.Path) && o.HasBorrowed(v.group.Path(), c.path, p.Resource)
		})
	}
	c.reachable[set] = can
	return can
}

// exceeds reports whether the pods of the unit, except those being deleted, request more than was admitted.
func (w *world) exceeds(u *scheduler.Unit) bool {
	w.lasting = true
	defer func() { w.lasting = false }()
	c := w.chargeOf(u)
	return !c.Total().Equal(asked(u).Requests)
}
