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
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// grows makes a unit growth of the job of another unit.
func (w *world) grows(job string) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) {
		u.Growth, u.Owner, u.Label = true, w.units[job].Owner, w.units[job].Label
		u.Demand.Requests = w.onlyPods(u.Demand.Requests)
	}
}

// onlyPods returns the requests of pods, without the job itself.
func (w *world) onlyPods(v resources.Vector) (rest resources.Vector) {
	cpu := w.names.ID("cpu")
	amount, _ := v.Get(cpu)
	return rest.With(cpu, amount)
}

// A job and its growth are charged for what both were admitted with, or what all pods request if that is more. A
// restart of the controller, which may see the units in any order, changes nothing.
func TestPropertyAJobAndItsGrowthAreChargedOnceForTheirPods(t *testing.T) {
	law := judge(t, "a job and its growth are charged once")
	rapid.Check(t, func(t *rapid.T) {
		grown := false
		w := newWorld(t, roundRobin(), leaf("a", cpu("40"), "a"))
		w.exact = false
		made := 0
		pick := func(is func(*scheduler.Unit) bool) string {
			var keys []string
			for _, key := range slices.Sorted(maps.Keys(w.units)) {
				if is(w.units[key]) {
					keys = append(keys, key)
				}
			}
			if len(keys) == 0 {
				t.Skip("no such unit")
			}
			return rapid.SampledFrom(keys).Draw(t, "unit")
		}
		amount := func() map[string]string { return cpu(fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "cpu"))) }
		base := func(u *scheduler.Unit) bool { return !u.Growth && holds(u) }
		t.Repeat(map[string]func(*rapid.T){
			"a job is submitted": func(*rapid.T) {
				made++
				w.submit(fmt.Sprint("a/", made), amount())
			},
			"a job grows": func(t *rapid.T) {
				of := pick(base)
				made++
				key := fmt.Sprint("a/", rapid.SampledFrom([]string{"0", "z"}).Draw(t, "before or after it"), made)
				w.submit(key, amount(), w.grows(of))
			},
			"a pod is created": func(t *rapid.T) {
				made++
				w.pod(w.podOf(pick(base), fmt.Sprint("pod-", made), 1000*rapid.Int64Range(1, 6).Draw(t, "cpu")))
			},
			"a pod is gone": func(t *rapid.T) {
				if len(w.pods) == 0 {
					t.Skip("no pod")
				}
				w.podGone(rapid.SampledFrom(slices.Sorted(maps.Keys(w.pods))).Draw(t, "pod"))
			},
			"growth is evicted": func(*rapid.T) { w.write(pick(func(u *scheduler.Unit) bool { return u.Growth && holds(u) }), stop) },
			"growth shrinks": func(*rapid.T) {
				w.write(pick(func(u *scheduler.Unit) bool { return u.Growth && holds(u) }), func(u *scheduler.Unit) {
					u.Demand.Requests = u.Demand.Requests.With(w.names.ID("cpu"), 1000)
				})
			},
			"growth is given back": func(*rapid.T) { w.delete(pick(func(u *scheduler.Unit) bool { return u.Growth })) },
			"a restart":            func(*rapid.T) { w.restart() },
			"": func(t *rapid.T) {
				w.settle()
				want, jobs := int64(0), int64(0)
				id := w.names.ID("cpu")
				admitted, requested := map[string]int64{}, map[string]int64{}
				for _, u := range w.units {
					if holds(u) {
						amount, _ := u.Demand.Requests.Get(id)
						admitted[u.Owner] += amount
						grown = grown || u.Growth
						if !u.Growth {
							jobs++
						}
					}
				}
				for _, p := range w.pods {
					amount, _ := p.Requests.Get(id)
					requested[p.Owner] += amount
				}
				for owner, amount := range admitted {
					want += max(amount, requested[owner])
				}
				used := w.tree.Usage()[0]
				if got, _ := used.Used.Get(id); got != want || int64(used.Jobs) != jobs {
					t.Fatalf("%d milli-CPU and %d jobs are used, want %d and %d", got, used.Jobs, want, jobs)
				}
			},
		})
		law.add(grown, w.allEvictions())
	})
}

// Growth is evicted before jobs that have started later, and is evicted although pods of its job keep running.
func TestGrowthGoesFirst(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("a", cpu("6"), "a"))
	w.exact = false
	w.treeOpts.Reclaim = true
	w.plant(w.root)
	w.configure(scheduler.QueueChanged{Queue: "a", Preemption: scheduler.Preemption{WithinQueue: true}})
	w.enqueue("a/1", cpu("2"))
	w.enqueue("a/growth", cpu("2"), w.grows("a/1"))
	w.after(time.Minute)
	w.enqueue("a/2", cpu("2"))
	for i := range 4 {
		w.pod(w.podOf("a/1", fmt.Sprint("pod-", i), 1000))
	}
	w.after(time.Minute)
	w.enqueue("a/urgent", cpu("2"), priority(1))
	if got := w.evicted(); !slices.Equal(got, []string{"a/growth"}) {
		t.Fatalf("evicted are %v, want a/growth", got)
	}
	if why := w.writes("a/growth", scheduler.Evict)[0].Message; !strings.HasSuffix(why, "the pods that this job added are queued again") {
		t.Errorf("the growth is evicted because %s", why)
	}
	w.podGone("pod-3")
	w.podGone("pod-2")
	w.change("a/growth", stop)
	expectReleased(t, w, "a/1", "a/2", "a/urgent")
}

// A job that has run for its MinRunTime is not evicted because its growth has not.
func TestYoungGrowthGoesBeforeItsJob(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("a", cpu("4"), "a"))
	w.exact = false
	w.configure(scheduler.QueueChanged{Queue: "a", Preemption: scheduler.Preemption{WithinQueue: true, MinRunTime: scheduler.Period{Set: true, Value: time.Hour}}})
	w.submit("a/1", cpu("2"))
	w.after(2 * time.Hour)
	w.enqueue("a/growth", cpu("2"), w.grows("a/1"))
	w.enqueue("a/urgent", cpu("2"), priority(1))
	expectEvicted(t, w, "a/growth")
}

// No other unit is evicted while pods of the growth are within their grace periods, and soon after.
func TestGrowthHasTheGracePeriodsOfItsPods(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("a", cpu("6"), "a"))
	w.exact = false
	w.configure(scheduler.QueueChanged{Queue: "a", Preemption: scheduler.Preemption{WithinQueue: true}})
	w.submit("a/1", cpu("2"))
	w.submit("a/2", cpu("2"))
	w.settle()
	w.enqueue("a/growth", cpu("2"), w.grows("a/1"))
	pod := func(i int, leaves bool) {
		p := w.podOf("a/1", fmt.Sprint("pod-", i), 1000)
		p.Terminating = leaves
		w.pod(p)
	}
	for i := range 4 {
		pod(i, false)
	}
	w.after(time.Minute)
	w.enqueue("a/urgent", cpu("2"), priority(1))
	pod(3, true)
	w.after(scheduler.DefaultEvictionTimeout + 4*time.Minute)
	expectEvicted(t, w, "a/growth")
	w.podGone("pod-3")
	w.after(4 * time.Minute)
	expectEvicted(t, w, "a/growth")
	w.after(2 * time.Minute)
	if got := w.evicted(); len(got) != 2 {
		t.Errorf("evicted are %v, want another unit in place of one that does not stop", got)
	}
}

// Growth that does not borrow is as protected as its job.
func TestGrowthOfANonPreemptibleJobIsNotEvicted(t *testing.T) {
	for _, preempts := range []bool{false, true} {
		w := newWorld(t, roundRobin(), owning("a", cpu("4"), cpu("4")))
		w.exact = false
		w.configure(scheduler.QueueChanged{Queue: "a", Preemption: scheduler.Preemption{WithinQueue: true}})
		w.enqueue("a/1", cpu("2"), preemptible(false))
		w.enqueue("a/growth", cpu("2"), preemptible(preempts), w.grows("a/1"))
		w.after(time.Minute)
		w.enqueue("a/urgent", cpu("2"), priority(1))
		if got := w.evicted(); (len(got) > 0) != preempts {
			t.Errorf("preemptible %t: evicted are %v", preempts, got)
		}
	}
}

// Growth is no evidence of what jobs request or how long they run.
func TestNothingIsLearnedOfGrowth(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.ShortestFirst}, leaf("root", map[string]string{quota.JobsResource: "1"}, "a"))
	w.exact = false
	w.enqueue("a/job", cpu("1"))
	for i := range 20 {
		key := fmt.Sprintf("a/growth%02d", i)
		w.enqueue(key, cpu("8"), w.grows("a/job"))
		if _, runs := w.core.RunOf(key); runs {
			t.Fatal("its run is recorded")
		}
		w.delete(key)
		w.settle()
	}
	w.submit("a/x-2", cpu("2"))
	w.submit("a/y-1", cpu("1"))
	expectOrder(t, w, "a/x-2", "a/y-1")
}

// A job is not queued again while it has pods left, even if its growth holds quota for as many.
func TestAJobWaitsForItsPodsAlsoIfItHasGrown(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("a", cpu("8"), "a"))
	w.exact = false
	w.enqueue("a/1", cpu("2"))
	w.enqueue("a/growth", cpu("2"), w.grows("a/1"))
	w.pod(w.podOf("a/1", "pod", 1000))
	w.change("a/1", stop)
	w.expectCount("a/1", scheduler.Requeue, 0)
	w.podGone("pod")
	w.settle()
	w.expectCount("a/1", scheduler.Requeue, 1)
}
