package scheduler_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/preemption"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// rest lets jobs stop that are evicted for others until none is.
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
			if w.after(10 * time.Second); len(w.landed) == landed { // else something is still to follow from a write
				return
			}
		default:
			w.after(scheduler.DefaultEvictionTimeout) // the room of units that are evicted for other reasons is kept until then
		}
		if round > 200 {
			w.t.Fatalf("there is no end of evictions: %s", w.story(12))
		}
	}
}

// isRoomKept reports whether room is kept for a unit that can start when it is there.
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

// checkVictim proves of a unit that is about to be evicted for another one that it may be.
func (w *world) checkVictim(write scheduler.Write) {
	if write.Kind != scheduler.Evict || !isForOther(write) {
		return
	}
	u := w.units[write.Key]
	if u == nil || u.Version != write.Version {
		return // the core does not know of a change yet, so the write fails
	}
	exceeds := false
	if c := w.core.ChargeOf(write.Key); c != nil {
		exceeds = !c.Total().Equal(asked(u).Requests)
	}
	period := w.opts.MinRunTime
	if set := w.queueOf(u).Preemption.MinRunTime; set.Set {
		period = set.Value
	}
	switch {
	case !holds(u) || u.Unstoppable || u.Over || !u.Demand.Preemptible && !exceeds:
		w.t.Fatalf("unit %s may not be evicted: %+v", write.Key, u)
	case u.Phase != scheduler.Reserved && w.now.Before(u.DequeuedAt.Add(period)):
		w.t.Fatalf("unit %s is evicted %v after its start, and is protected for %v", write.Key, w.now.Sub(u.DequeuedAt), period)
	case write.Reason == wellknown.ReasonReclaimed && !w.treeOpts.Reclaim, write.Reason == wellknown.ReasonPreempted && !w.queueOf(u).Preemption.WithinQueue:
		w.t.Fatalf("unit %s is evicted for %s, which is switched off", write.Key, write.Reason)
	}
}

// expectNoRoomToMake proves that in a world at rest no unit waits for which room could be made.
func expectNoRoomToMake(t *rapid.T, w *world) {
	charged := w.charged()
	var candidates []*preemption.Candidate
	w.eachUnitCharge(charged, func(u *scheduler.Unit, g quota.Group, c *quota.Charge) {
		exceeds := w.exceeds(u)
		if !holds(u) || u.Evicted || u.Stopped || u.Over || u.Unstoppable || !u.Demand.Preemptible && !exceeds {
			return
		}
		started := u.DequeuedAt.UnixMicro()
		if u.Phase == scheduler.Reserved {
			started = math.MaxInt64
		}
		candidates = append(candidates, &preemption.Candidate{Key: u.Key, Priority: w.queueOf(u).MaxPriority.Of(u.Priority),
			Started: started, Exceeding: exceeds, Group: g, Charge: c})
	})
	for _, key := range slices.Sorted(maps.Keys(w.units)) {
		u := w.units[key]
		group, refusal := charged.Place(u.Namespace(), u.QuotaName)
		set := w.queueOf(u)
		if u.Phase != scheduler.Waiting || u.Held != nil || refusal != nil || set.Stop != scheduler.NotStopped || w.missingCheck(u) != "" || w.awaitsPodsOfOthers(u) || w.now.Before(u.RequeueAt) {
			continue
		}
		o := w.oracle()
		if r := o.Refuses(group.Path(), asked(u)); isFinal(r) || r == wellknown.ReasonBorrowingPaused || w.policyOf(set).FrontOnly && w.front(o, group) != u {
			continue
		}
		claim := preemption.Claim{Group: group, Demand: asked(u), Reclaims: w.treeOpts.Reclaim}
		if set.Preemption.WithinQueue {
			mine := set.MaxPriority.Of(u.Priority)
			claim.Preempts = func(c *preemption.Candidate) bool { return c.Priority < mine }
		}
		if victims := preemption.Choose(charged, claim, slices.Clone(candidates)); len(victims) > 0 {
			t.Fatalf("unit %s waits (%s) and %s could be evicted for it", key, u.Reason, victims[0].Key)
		}
	}
}

// exceeds reports whether pods of the unit that are not being deleted request more than was admitted.
func (w *world) exceeds(u *scheduler.Unit) bool {
	w.lasting = true
	defer func() { w.lasting = false }()
	c := w.chargeOf(u)
	return !c.Total().Equal(asked(u).Requests)
}
