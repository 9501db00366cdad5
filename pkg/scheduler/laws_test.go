package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree/oracle"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// The laws of reclaim in docs/concepts/preemption.md, judged by the API objects alone: quota planned or kept for others
// is not used.

// checkReclaims verifies, for each eviction that is about to be sent, that the quota of the victim has borrowed what
// the claimant requests, and that the claimant is then within the guarantee of its own quota. The core must know all
// objects, so no write can be in progress.
func (w *world) checkReclaims(plan scheduler.Plan) {
	if w.without || len(w.news)+len(w.sent)+len(w.outcomes) > 0 {
		return
	}
	sent := map[string]bool{}
	for _, write := range plan {
		sent[write.Key] = write.Kind == scheduler.Evict
	}
	for _, write := range plan {
		claimant := w.units[w.keyOf(write.EvictedFor)]
		if write.Kind != scheduler.Evict || write.Reason != wellknown.ReasonReclaimed || claimant == nil || claimant.Phase != scheduler.Waiting {
			continue
		}
		victim := w.units[write.Key]
		to, refused := w.tree.Place(claimant.Namespace(), claimant.QuotaName)
		from, gone := w.tree.Place(victim.Namespace(), victim.QuotaName)
		if refused != nil || gone != nil {
			continue
		}
		isPaced := slices.ContainsFunc(w.landed, func(s scheduler.Write) bool { return s.EvictedFor == write.EvictedFor })
		if isPaced && claimant.Reason != wellknown.ReasonPreempting { // another unit relies on what was decided for it
			continue
		}
		w.reclaims++
		before := w.oracleWithoutUnits(func(u *scheduler.Unit) bool { return w.isLeaving(u) && !sent[u.Key] })
		borrowed := func(a resources.Amount) bool {
			return a.Value > 0 && before.HasBorrowed(from.Path(), to.Path(), w.names.Name(a.ID))
		}
		if !slices.ContainsFunc(asked(claimant).Requests, borrowed) {
			w.t.Fatalf("unit %s is evicted for %s, but quota %s has borrowed nothing that it requests: %s", write.Key, claimant.Key, from.Path(), w.story(20))
		}
		// Units behind it in its queue do not end its right: they have borrowed since, or are evicted for it as fast as their
		// queue allows.
		after := w.oracleWithoutUnits(func(u *scheduler.Unit) bool {
			return w.isLeaving(u) || sent[u.Key] || u != claimant && w.queueNameOf(u) == w.queueNameOf(claimant) && w.before(claimant, u)
		})
		if !after.Within(oracle.Branch{Path: to.Path()}, asked(claimant)) {
			w.t.Fatalf("unit %s is evicted for %s, which is not within the guarantee of quota %s: %s", write.Key, claimant.Key, to.Path(), w.story(20))
		}
	}
}

// isLeaving reports whether the unit has stopped, or was evicted recently, so that its room is expected.
func (w *world) isLeaving(u *scheduler.Unit) bool {
	timeout := w.opts.EvictionTimeout
	if timeout == 0 {
		timeout = scheduler.DefaultEvictionTimeout
	}
	return holds(u) && (u.Stopped || u.Evicted && w.now.Before(u.Eviction.At.Add(timeout)))
}

// oracleWithoutUnits returns the oracle without the units.
func (w *world) oracleWithoutUnits(leaves func(*scheduler.Unit) bool) *oracle.Tree {
	o := w.oracle()
	w.eachUnitCharge(w.fresh(), func(u *scheduler.Unit, g quota.Group, c *quota.Charge) {
		if !leaves(u) {
			return
		}
		if i := slices.IndexFunc(o.Charged, func(o oracle.Charged) bool { return o.Path == g.Path() && !o.Gone && o.Charge.Same(c) }); i >= 0 {
			o.Charged = slices.Delete(o.Charged, i, i+1)
		}
	})
	return o
}

// Small units in quotas that lend to each other, in a world that keeps changing: jobs end, stop late or never, and
// grow, trees change, controllers restart, and other processes write evictions.
func TestPropertyTheLawsOfReclaim(t *testing.T) {
	law := judge(t, "nobody within the guarantee is evicted for a borrower")
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, scheduler.Options{Policy: rapid.SampledFrom(queue.Policies()).Draw(t, "policy"),
			MinRunTime: time.Duration(rapid.SampledFrom([]int{0, 0, 20}).Draw(t, "min run time")) * time.Second}, drawBorrowers(t))
		w.treeOpts.Reclaim, w.exact, w.unproven = true, false, true // other tests verify the invariants
		w.plant(w.root)
		for _, name := range w.queues() {
			w.configure(scheduler.QueueChanged{Queue: name, Preemption: scheduler.Preemption{WithinQueue: rapid.IntRange(0, 2).Draw(t, "within "+name) == 0,
				MaxPerMinute: int32(rapid.IntRange(0, 1).Draw(t, "per minute"))}})
		}
		anyUnit := func(*scheduler.Unit) bool { return true }
		for i := range rapid.IntRange(10, 50).Draw(t, "steps") {
			switch rapid.IntRange(0, 14).Draw(t, "step") {
			case 0:
				if key := drawUnit(t, w, holds); key != "" {
					w.finish(key)
				}
			case 1, 2:
				if key := drawUnit(t, w, func(u *scheduler.Unit) bool { return holds(u) && u.Evicted && !u.Stopped }); key != "" {
					w.write(key, stop)
				}
			case 3:
				if key := drawUnit(t, w, holds); key != "" {
					w.pod(w.podOf(key, fmt.Sprint("pod-", i), 3000))
				}
			case 4:
				switch rapid.IntRange(0, 3).Draw(t, "what changes") {
				case 0:
					w.plant(drawBorrowers(t))
				case 1:
					w.restart()
				case 2:
					if key := drawUnit(t, w, holds); key != "" {
						other := w.units[drawUnit(t, w, anyUnit)].UID
						w.write(key, func(u *scheduler.Unit) { u.Evicted, u.Eviction = true, scheduler.Eviction{At: w.now, For: other} })
					}
				default:
					if key := drawUnit(t, w, anyUnit); key != "" {
						w.delete(key)
					}
				}
			default:
				request := cpu(rapid.SampledFrom([]string{"1", "1", "2", "3"}).Draw(t, "cpu"))
				if rapid.IntRange(0, 3).Draw(t, "asks gpu") == 0 {
					request["gpu"] = "1"
				}
				w.submit(fmt.Sprintf("%s/u%02d", rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "namespace"), i), request,
					priority(int32(rapid.IntRange(0, 3).Draw(t, "priority"))), unstoppable(rapid.IntRange(0, 9).Draw(t, "unstoppable") == 0), w.drawElastic(t))
			}
			w.after(time.Duration(rapid.SampledFrom([]int{0, 1, 30}).Draw(t, "seconds")) * time.Second)
		}
		law.add(w.reclaims > 0, w.allEvictions())
	})
}
