package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// With units that run forever and with all kinds of priorities, guarantees and sizes, each eviction leads to a start,
// and evictions end.
func TestPropertyEvictionsLeadToStartsAndEnd(t *testing.T) {
	helps, reclaim := judge(t, "evictions end, and each leads to a start"), judge(t, "nobody within the guarantee is evicted for a borrower")
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, scheduler.Options{Policy: rapid.SampledFrom(queue.Policies()).Draw(t, "policy"),
			EvictionTimeout: 24 * time.Hour,
			MinRunTime:      time.Duration(rapid.IntRange(0, 30).Draw(t, "min run time")) * time.Second}, drawBorrowers(t))
		w.treeOpts.Reclaim = rapid.IntRange(0, 4).Draw(t, "reclaim") > 0
		w.plant(w.root)
		for _, name := range w.queues() {
			w.configure(scheduler.QueueChanged{Queue: name, Preemption: scheduler.Preemption{WithinQueue: rapid.Bool().Draw(t, "within "+name),
				MaxPerMinute: int32(rapid.IntRange(0, 1).Draw(t, "per minute"))}})
		}
		units := rapid.IntRange(2, 16).Draw(t, "units")
		for i := range units {
			w.submit(fmt.Sprintf("%s/u%02d", rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "namespace"), i), drawWork(t),
				priority(int32(rapid.IntRange(0, 3).Draw(t, "priority"))), preemptible(rapid.IntRange(0, 3).Draw(t, "preemptible") > 0),
				unstoppable(rapid.IntRange(0, 7).Draw(t, "unstoppable") == 0), w.drawElastic(t))
			if rapid.Bool().Draw(t, "wait") {
				w.after(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			}
			if rapid.IntRange(0, 3).Draw(t, "some stop") == 0 {
				for _, key := range w.evicted() {
					if rapid.Bool().Draw(t, key) {
						w.write(key, stop)
					}
				}
			}
		}
		w.rest()
		expectEachEvictionHelps(t, w)
		helps.add(len(w.allEvictions()) > 0, w.allEvictions())
		reclaim.add(w.reclaims > 0, w.allEvictions())
		if n := len(w.allEvictions()); n > 4*units*units {
			t.Fatalf("%d evictions of %d units", n, units)
		}
	})
}

// With few different requests, many units are refused together. No matter which units leave or arrive, no unit waits
// that others could be evicted for.
func TestPropertyNobodyWaitsForWhomRoomCouldBeMade(t *testing.T) {
	law := judge(t, "nobody waits for whom room could be made")
	rapid.Check(t, func(t *rapid.T) {
		// In the small tree with small units, one unit may need the room of several reclaimed units.
		draw, sizes := drawBorrowers, []string{"2", "5"}
		if rapid.Bool().Draw(t, "small") {
			draw, sizes = drawFull, []string{"1", "3"}
		}
		w := newWorld(t, scheduler.Options{Policy: rapid.SampledFrom([]*queue.Policy{queue.RoundRobin, queue.Priority}).Draw(t, "policy"),
			MinRunTime: time.Duration(rapid.SampledFrom([]int{0, 30}).Draw(t, "min run time")) * time.Second}, draw(t))
		w.treeOpts.Reclaim = rapid.Bool().Draw(t, "reclaim")
		w.plant(w.root)
		for _, name := range w.queues() {
			w.configure(scheduler.QueueChanged{Queue: name, Preemption: scheduler.Preemption{WithinQueue: rapid.IntRange(0, 3).Draw(t, "within "+name) > 0}})
		}
		namespaces := rapid.SampledFrom([]string{"a", "b"})
		for i := range rapid.IntRange(2, 16).Draw(t, "steps") {
			existing := slices.Sorted(maps.Keys(w.units))
			switch step := rapid.IntRange(0, 9).Draw(t, "step"); {
			case step == 0 && len(existing) > 0:
				w.delete(rapid.SampledFrom(existing).Draw(t, "deleted"))
			case step == 1 && len(existing) > 0:
				w.write(rapid.SampledFrom(existing).Draw(t, "changed"), func(u *scheduler.Unit) { u.Priority = int32(rapid.IntRange(0, 3).Draw(t, "priority")) })
			case step == 2 && len(existing) > 0:
				w.write(rapid.SampledFrom(existing).Draw(t, "made preemptible"), func(u *scheduler.Unit) { u.Demand.Preemptible = true })
			case step == 3:
				w.configure(scheduler.QueueChanged{Queue: rapid.SampledFrom(w.queues()).Draw(t, "configured"),
					Preemption: scheduler.Preemption{WithinQueue: rapid.IntRange(0, 3).Draw(t, "within") > 0}})
			default:
				w.submit(fmt.Sprintf("%s/u%02d", namespaces.Draw(t, "namespace"), i), cpu(rapid.SampledFrom(sizes).Draw(t, "cpu")),
					priority(int32(rapid.IntRange(0, 3).Draw(t, "priority"))), preemptible(rapid.IntRange(0, 3).Draw(t, "preemptible") > 0), w.drawElastic(t))
			}
			w.after(time.Duration(rapid.SampledFrom([]int{0, 1, 20}).Draw(t, "seconds")) * time.Second)
		}
		w.rest()
		expectNoRoomToMake(t, w)
		law.add(w.sought > 0 || slices.ContainsFunc(w.landed, isForOther), w.allEvictions())
	})
}

// drawFull draws a tree that a few units fill, with groups that borrow from each other.
func drawFull(t *rapid.T) tree.Node {
	least := func(name string) map[string]string { return cpu(fmt.Sprint(rapid.IntRange(1, 3).Draw(t, name+" min"))) }
	return owning("root", nil, cpu(fmt.Sprint(rapid.IntRange(6, 7).Draw(t, "cpu"))), owning("a", least("a"), nil), owning("b", least("b"), nil), owning("c", nil, nil))
}

// drawWork draws a request that fits into the trees of drawBorrowers.
func drawWork(t *rapid.T) map[string]string {
	request := cpu(fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "cpu")))
	if rapid.IntRange(0, 2).Draw(t, "asks gpu") == 0 {
		request["gpu"] = fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "gpu"))
	}
	return request
}

// expectEachEvictionHelps verifies that each claimant was admitted afterwards, or a unit ahead of it in its queue,
// which may also block the queue, or a unit below its group, which uses the same guarantee. No unit leaves, so nothing
// else can happen.
func expectEachEvictionHelps(t *rapid.T, w *world) {
	for i, write := range w.landed {
		if !isForOther(write) || write.Kind != scheduler.Evict {
			continue
		}
		claimant := w.units[w.keyOf(write.EvictedFor)]
		helps := func(s scheduler.Write) bool {
			u := w.units[s.Key]
			blocks := w.policyOf(w.queueOf(claimant)).FrontOnly && u.Phase == scheduler.Waiting && s.Queue == w.queueNameOf(claimant) && w.before(u, claimant)
			isAhead := s.Queue == w.queueNameOf(claimant) && w.before(u, claimant)
			return blocks || s.Kind == scheduler.Dequeue && (u == claimant || isAhead || strings.HasPrefix(s.Quota, w.pathOf(claimant)+"/"))
		}
		if !slices.ContainsFunc(w.landed[i:], helps) {
			t.Fatalf("%s was evicted for %s, which never started: %s", write.Key, claimant.Key, w.story(30))
		}
	}
}

// keyOf finds a unit by its UID.
func (w *world) keyOf(uid string) string {
	for key, u := range w.units {
		if u.UID == uid {
			return key
		}
	}
	return ""
}

func (w *world) queueNameOf(u *scheduler.Unit) string { return w.groupOf(u).Queue() }

func (w *world) pathOf(u *scheduler.Unit) string { return w.groupOf(u).Path() }

func (w *world) groupOf(u *scheduler.Unit) quota.Group {
	group, _ := w.tree.Place(u.Namespace(), u.QuotaName)
	return group
}
