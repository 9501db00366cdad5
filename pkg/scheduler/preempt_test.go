package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func gpu(n string) map[string]string { return map[string]string{"gpu": n} }

// reclaiming returns a world whose groups get their guarantee back.
func reclaiming(t *testing.T, root tree.Node) *world {
	t.Helper()
	w := newWorld(t, roundRobin(), root)
	w.treeOpts.Reclaim = true
	w.plant(root)
	return w
}

// preempting returns a world with a queue in which higher priority evicts lower priority.
func preempting(t *testing.T, root tree.Node, queue string) *world {
	t.Helper()
	w := newWorld(t, roundRobin(), root)
	w.configure(scheduler.QueueChanged{Queue: queue, Preemption: scheduler.Preemption{WithinQueue: true}})
	return w
}

// evicted returns the units whose evictions are in progress, by key.
func (w *world) evicted() (keys []string) {
	for key, u := range w.units {
		if u.Evicted && !u.Stopped && holds(u) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// allEvictions returns the writes of evictions.
func (w *world) allEvictions() (found []scheduler.Write) {
	for _, s := range w.landed {
		if s.Kind == scheduler.Evict {
			found = append(found, s)
		}
	}
	return found
}

func expectEvicted(t *testing.T, w *world, keys ...string) {
	t.Helper()
	if got := w.evicted(); !slices.Equal(got, keys) {
		t.Fatalf("evicted are %v, want %v", got, keys)
	}
}

// stopEvicted stops all evicted jobs.
func (w *world) stopEvicted() {
	for _, key := range w.evicted() {
		w.write(key, stop)
	}
	w.settle()
}

// submitAll starts units with the same request one after the other.
func (w *world) submitAll(request map[string]string, keys ...string) {
	for _, key := range keys {
		w.enqueue(key, request)
		w.now = w.now.Add(time.Second)
	}
}

func numbered(namespace string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("%s/%02d", namespace, i))
	}
	return keys
}

func TestAProductionUnitStartsInPlaceOfADevelopmentUnitWhichRunsAgainAfterwards(t *testing.T) {
	w := preempting(t, owning("team", gpu("1"), gpu("1")), "team")
	w.enqueue("team/dev", gpu("1"), priority(100))
	first := w.units["team/dev"].Submitted
	w.now = w.now.Add(time.Second)
	w.enqueue("team/prod", gpu("1"), priority(1000))
	expectEvicted(t, w, "team/dev")
	expectReleased(t, w, "team/dev")
	if write := w.writes("team/dev", scheduler.Evict)[0]; write.Reason != wellknown.ReasonPreempted || write.EvictedFor != w.units["team/prod"].UID || !strings.Contains(write.Message, "team/prod") {
		t.Fatalf("dev is evicted by %+v", write)
	}
	w.after(2 * time.Second)
	if got := w.units["team/prod"].Reason; got != wellknown.ReasonPreempting {
		t.Fatalf("prod waits for %s", got)
	}
	w.stopEvicted()
	expectReleased(t, w, "team/prod")
	w.finish("team/prod")
	w.after(time.Minute)
	expectReleased(t, w, "team/dev")
	if w.units["team/dev"].Submitted != first {
		t.Fatal("dev has lost its place")
	}
}

func TestTheNextUnitEvictsIfTheFirstIsDeletedWhileItWaitsForAVictim(t *testing.T) {
	w := preempting(t, owning("team", gpu("1"), gpu("1")), "team")
	w.configure(scheduler.QueueChanged{Queue: "team", Preemption: scheduler.Preemption{WithinQueue: true,
		MinRunTime: scheduler.Period{Set: true, Value: 30 * time.Second}}})
	w.enqueue("team/dev", gpu("1"), priority(100))
	w.submit("team/prod-1", gpu("1"), priority(1000))
	w.after(time.Second)
	w.submit("team/prod-2", gpu("1"), priority(1000))
	w.after(time.Second)
	w.delete("team/prod-1")
	w.after(27 * time.Second)
	expectEvicted(t, w)
	w.after(10 * time.Second)
	expectEvicted(t, w, "team/dev")
}

func TestAUnitEvictsAfterItWasBehindAnotherOneOfItsSizeThatCouldNot(t *testing.T) {
	w := preempting(t, owning("team", cpu("6"), cpu("6")), "team")
	w.enqueue("team/fixed", cpu("2"), preemptible(false))
	w.submit("team/first", cpu("5"))
	w.submit("team/second", cpu("5"), priority(1000))
	w.settle()
	w.enqueue("team/dev", cpu("2"), priority(100))
	w.write("team/first", func(u *scheduler.Unit) { u.Priority = 1000 })
	w.after(2 * time.Minute)
	expectEvicted(t, w)
	w.delete("team/first")
	w.after(time.Second)
	w.delete("team/fixed")
	w.after(20 * time.Second)
	expectEvicted(t, w, "team/dev")
}

func lenders() tree.Node {
	return owning("root", nil, cpu("20"), owning("a", cpu("10"), cpu("20")), owning("b", cpu("10"), cpu("20")))
}

func TestReclaimCanBeSwitchedOffForAPartOfTheTree(t *testing.T) {
	root := lenders()
	root.Children[0].Attributes = map[string]string{wellknown.ReclaimAttribute: wellknown.ReclaimNever}
	w := reclaiming(t, root)
	w.submitAll(cpu("1"), numbered("a", 20)...)
	w.submit("b/one", cpu("1"))
	w.after(time.Minute)
	expectEvicted(t, w)
	w.finish("a/00") // no unit can borrow in the meantime
	w.submit("a/more", cpu("1"))
	w.after(time.Minute)
	if !holds(w.units["b/one"]) || holds(w.units["a/more"]) {
		t.Fatal("what b is owed is borrowed again")
	}
}

func TestRoomThatIsMadeIsKeptForTheUnitForWhichItWasMade(t *testing.T) {
	w := reclaiming(t, lenders())
	w.submitAll(cpu("5"), numbered("a", 4)...)
	w.enqueue("b/large", cpu("10"))
	expectEvicted(t, w, "a/02", "a/03")
	w.write("a/03", stop)
	w.submit("a/next", cpu("1"))
	w.submit("b/small", cpu("1"))
	w.after(time.Minute)
	expectReleased(t, w, "a/00", "a/01", "a/02")
	expectEvicted(t, w, "a/02") // no second wave
	w.stopEvicted()
	expectReleased(t, w, "a/00", "a/01", "b/large")
}

func TestAUnitAheadInTheQueueMayUseTheRoomThatWasMadeForAnother(t *testing.T) {
	w := reclaiming(t, lenders())
	w.submitAll(cpu("5"), numbered("a", 4)...)
	w.enqueue("b/large", cpu("10"))
	w.submit("b/urgent", cpu("5"), priority(9))
	w.write("a/03", stop)
	w.settle()
	expectReleased(t, w, "a/00", "a/01", "a/02", "b/urgent")
	w.stopEvicted()
	w.after(time.Minute)
	expectReleased(t, w, "a/00", "a/01", "a/02", "b/urgent") // b/large requests more than is left of the min of b
	w.finish("b/urgent")
	w.after(time.Minute)
	expectEvicted(t, w, "a/02")
	w.stopEvicted()
	w.after(time.Minute)
	expectReleased(t, w, "a/00", "a/01", "b/large")
}

func TestAnEvictionThatWasNotSentIsWithdrawn(t *testing.T) {
	w := reclaiming(t, lenders())
	w.configure(scheduler.QueueChanged{Queue: "root-a", Preemption: scheduler.Preemption{MaxPerMinute: 1}})
	w.submitAll(cpu("5"), numbered("a", 4)...)
	w.submit("b/one", cpu("10"))
	w.after(2 * time.Second)
	if n := len(w.evicted()); n != 1 {
		t.Fatalf("%d are evicted at once", n)
	}
	w.delete("b/one")
	w.after(5 * time.Minute)
	if n := len(w.evicted()); n != 1 {
		t.Fatalf("%d are evicted, want only the one that was evicted before", n)
	}
}

func TestEvictionsOfAQueueArePaced(t *testing.T) {
	w := reclaiming(t, lenders())
	w.configure(scheduler.QueueChanged{Queue: "root-a", Preemption: scheduler.Preemption{MaxPerMinute: 2}})
	w.submitAll(cpu("1"), numbered("a", 20)...)
	w.submit("b/one", cpu("5"))
	for _, want := range []int{2, 4, 5} {
		w.after(2 * time.Second)
		if n := len(w.allEvictions()); n != want {
			t.Fatalf("%d are evicted, want %d", n, want)
		}
		w.stopEvicted()
		w.after(59 * time.Second)
	}
	w.after(time.Minute)
	if !holds(w.units["b/one"]) {
		t.Fatal("b/one does not run")
	}
}

// The right of y/new counts on the evictions of y/00 and y/01, and one of them is not sent yet. It may be withdrawn, so
// nobody is evicted before that.
func TestARightDoesNotCountOnAnEvictionThatWasNotSent(t *testing.T) {
	w := reclaiming(t, owning("root", nil, cpu("12"), owning("x", cpu("6"), nil), owning("y", cpu("2"), nil), owning("z", nil, nil)))
	w.configure(scheduler.QueueChanged{Queue: "root-y", Preemption: scheduler.Preemption{WithinQueue: true, MaxPerMinute: 1}})
	for _, key := range append(numbered("z", 5), "y/low") {
		w.submit(key, cpu("1"), unstoppable(true))
	}
	w.submit("y/00", cpu("3"), priority(1))
	w.submit("y/01", cpu("3"), priority(1))
	w.after(time.Minute)
	w.submit("x/owed", cpu("6"))
	w.after(time.Second)
	w.finish("z/00")
	w.submit("z/late", cpu("1"))
	w.settle()
	w.submit("y/new", cpu("1"), priority(1))
	w.after(30 * time.Second)
	expectEvicted(t, w, "y/00")
	w.after(time.Minute)
	expectEvicted(t, w, "y/00", "y/01", "z/late")
}

// A unit that has run for a long time would lose more work than the one that started last, which is only protected for
// seconds.
func TestAUnitWaitsForTheVictimThatStartedLast(t *testing.T) {
	for _, c := range []struct {
		name       string
		minRunTime time.Duration
		evictsAt   time.Duration
		victim     string
	}{
		{"as long as it is protected", 30 * time.Second, 30 * time.Second, "a/new"},
		{"but not for long", time.Hour, 0, "a/old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := reclaiming(t, lenders())
			w.configure(scheduler.QueueChanged{Queue: "root-a", Preemption: scheduler.Preemption{MinRunTime: scheduler.Period{Set: true, Value: c.minRunTime}}})
			w.submit("a/old", cpu("10"))
			w.after(2 * time.Hour)
			w.enqueue("a/new", cpu("10"))
			w.submit("b/one", cpu("5"))
			if c.evictsAt > 0 {
				w.after(c.evictsAt - time.Second)
				expectEvicted(t, w)
			}
			w.after(time.Second)
			expectEvicted(t, w, c.victim)
		})
	}
}

func TestAUnitEvictsWhenItsVictimIsProtectedForAShorterTime(t *testing.T) {
	w := reclaiming(t, lenders())
	protect := func(d time.Duration) {
		w.configure(scheduler.QueueChanged{Queue: "root-a", Preemption: scheduler.Preemption{MinRunTime: scheduler.Period{Set: true, Value: d}}})
	}
	protect(time.Hour)
	w.enqueue("a/one", cpu("20"))
	w.submit("b/one", cpu("5"))
	w.after(5 * time.Minute)
	expectEvicted(t, w)
	protect(time.Minute)
	w.after(time.Second)
	expectEvicted(t, w, "a/one")
}

// Small units pass a large one and end before it could evict them. The large one does not wait for each of them.
func TestAUnitDoesNotWaitAgainAndAgainForVictimsThatStartedLast(t *testing.T) {
	w := preempting(t, owning("team", gpu("4"), gpu("4")), "team")
	w.configure(scheduler.QueueChanged{Queue: "team", Preemption: scheduler.Preemption{WithinQueue: true,
		MinRunTime: scheduler.Period{Set: true, Value: 30 * time.Second}}})
	w.submitAll(gpu("1"), numbered("team", 3)...)
	w.after(time.Hour)
	w.enqueue("team/short0", gpu("1"))
	w.submit("team/large", gpu("2"), priority(1000))
	begun := w.now
	for i := 1; len(w.allEvictions()) == 0; i++ {
		w.submit(fmt.Sprintf("team/short%d", i), gpu("1"))
		w.after(10 * time.Second)
		w.end(fmt.Sprintf("team/short%d", i-1))
		if waited := w.now.Sub(begun); waited > 80*time.Second {
			t.Fatalf("nobody is evicted after %v", waited)
		}
	}
	if waited := w.now.Sub(begun); waited < 30*time.Second {
		t.Fatalf("units are evicted after %v, although those that started last could be soon", waited)
	}
}

func TestAnotherUnitIsEvictedWhenOneDoesNotStop(t *testing.T) {
	w := reclaiming(t, lenders())
	w.submitAll(cpu("5"), numbered("a", 4)...)
	w.submit("b/one", cpu("5"))
	w.after(scheduler.DefaultEvictionTimeout - time.Second)
	expectEvicted(t, w, "a/03")
	w.after(10 * time.Second)
	expectEvicted(t, w, "a/02", "a/03")
	w.write("a/02", stop)
	w.after(time.Second)
	if !holds(w.units["b/one"]) {
		t.Fatal("b/one does not run")
	}
}

// The pod writes a checkpoint.
func TestNoOtherUnitIsEvictedWhileThePodsOfOneEndWithinTheirGracePeriod(t *testing.T) {
	w := reclaiming(t, lenders())
	w.submitAll(cpu("5"), numbered("a", 4)...)
	last := w.podOf("a/03", "pod", 5000)
	w.pod(last)
	w.submit("b/one", cpu("5"))
	w.after(time.Minute)
	expectEvicted(t, w, "a/03")
	last.Terminating = true
	w.pod(last)
	w.after(25 * time.Minute)
	expectEvicted(t, w, "a/03")
	w.restart()
	w.after(time.Minute)
	expectEvicted(t, w, "a/03")
	last.Requests = nil // its grace period is over, and its node does not report its end
	w.pod(last)
	w.after(scheduler.DefaultEvictionTimeout)
	expectEvicted(t, w, "a/02", "a/03")
}

// Other units that fit there wait too.
func TestAUnitGetsTheRoomOfOneThatStopsAtTheEndOfALongGracePeriod(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.configure(scheduler.QueueChanged{Queue: "root", Preemption: scheduler.Preemption{WithinQueue: true}})
	w.enqueue("a/saves", cpu("4"))
	last := w.podOf("a/saves", "pod", 4000)
	w.pod(last)
	w.submit("a/urgent", cpu("4"), priority(1))
	w.submit("a/small", cpu("1"))
	w.after(time.Minute)
	expectEvicted(t, w, "a/saves")
	last.Terminating = true
	w.pod(last)
	w.after(25 * time.Minute)
	w.podGone(last.UID)
	w.after(time.Second)
	w.change("a/saves", stop)
	expectReleased(t, w, "a/urgent")
}

func TestAGracePeriodOfYearsDoesNotKeepOthersFromTheirGuarantee(t *testing.T) {
	w := reclaiming(t, lenders())
	w.submitAll(cpu("5"), numbered("a", 4)...)
	last := w.podOf("a/03", "pod", 5000)
	last.Terminating = true
	w.pod(last)
	w.submit("b/one", cpu("5"))
	w.after(scheduler.MaxStopping - time.Second)
	expectEvicted(t, w, "a/03")
	w.after(time.Minute)
	expectEvicted(t, w, "a/02", "a/03")
}

// Its job is not suspended, and makes a pod again and again.
func TestPodsThatComeAndGoDoNotKeepOthersFromTheirGuarantee(t *testing.T) {
	w := reclaiming(t, lenders())
	w.submitAll(cpu("5"), numbered("a", 4)...)
	w.enqueue("b/one", cpu("5"))
	failing := w.podOf("a/03", "pod", 5000)
	for range scheduler.MaxStopping / time.Minute {
		w.pod(failing)
		w.after(time.Second)
		w.podGone(failing.UID)
		w.after(time.Minute)
	}
	expectEvicted(t, w, "a/02", "a/03")
}

func TestAnotherUnitThatEndsSparesVictimsThatWereNotEvictedYet(t *testing.T) {
	w := reclaiming(t, lenders())
	w.configure(scheduler.QueueChanged{Queue: "root-a", Preemption: scheduler.Preemption{MaxPerMinute: 1}})
	w.submitAll(cpu("5"), numbered("a", 4)...)
	w.enqueue("b/one", cpu("10"))
	w.stopEvicted()
	w.finish("a/00")
	w.after(5 * time.Minute)
	if n := len(w.allEvictions()); n != 1 || !holds(w.units["b/one"]) {
		t.Fatalf("%d were evicted; b/one runs: %t", n, holds(w.units["b/one"]))
	}
}

func TestARestartBetweenEvictionsEvictsNobodyMoreThanNeeded(t *testing.T) {
	for landed := range 3 {
		w := reclaiming(t, lenders())
		w.submitAll(cpu("5"), numbered("a", 4)...)
		w.submit("b/one", cpu("10"))
		w.hearAndThink()
		for range landed {
			w.land(slices.IndexFunc(w.sent, func(s scheduler.Write) bool { return s.Kind == scheduler.Evict }))
		}
		w.sent = nil
		w.restart()
		w.settle()
		expectEvicted(t, w, "a/02", "a/03")
		w.submit("a/next", cpu("5"))
		w.write("a/03", stop)
		w.settle()
		w.stopEvicted()
		w.after(time.Minute)
		expectReleased(t, w, "a/00", "a/01", "b/one")
		if n := len(w.allEvictions()); n != 2 {
			t.Fatalf("%d evictions after a restart behind %d, want 2", n, landed)
		}
	}
}

func TestAChangeOfTheTreeKeepsRoomForTheUnitForWhichItIsMade(t *testing.T) {
	w := reclaiming(t, lenders())
	w.submitAll(cpu("5"), numbered("a", 4)...)
	w.enqueue("b/one", cpu("10"))
	root := lenders()
	root.Children[1].Name = "renamed"
	w.plant(root)
	w.submit("a/next", cpu("5"))
	w.write("a/03", stop)
	w.after(time.Second)
	expectReleased(t, w, "a/00", "a/01", "a/02")
	w.stopEvicted()
	expectReleased(t, w, "a/00", "a/01", "b/one")
	if n := len(w.allEvictions()); n != 2 {
		t.Fatalf("%d evictions, want 2", n)
	}
}

// The eviction cannot be written because the victim has changed. It is decided again, for the unit that is now owed the
// room.
func TestAnEvictionIsNotSentForAUnitThatHasLostItsRight(t *testing.T) {
	w := reclaiming(t, owning("root", nil, cpu("6"), owning("a", nil, nil), owning("b", cpu("3"), nil)))
	w.submit("a/x", cpu("5"))
	w.after(time.Second)
	w.submit("b/large", cpu("3"))
	w.hearAndThink()
	w.pod(pods.Pod{Namespace: "b", UID: "notebook", Requests: resources.Vector{{ID: w.names.ID("cpu"), Value: 1000}}, Stray: true})
	w.submit("b/small", cpu("1"))
	w.hearAndThink()
	w.write("a/x", priority(1))
	w.after(time.Minute)
	expectEvicted(t, w, "a/x")
	if got := w.units["a/x"].Eviction.For; got != w.units["b/small"].UID {
		t.Errorf("a/x is evicted for %s: %s", w.keyOf(got), w.story(10))
	}
}

func TestAnEvictionMayBecomeThatForAnotherUnit(t *testing.T) {
	w := preempting(t, owning("team", gpu("1"), gpu("1")), "team")
	for _, u := range []struct {
		key   string
		value int32
	}{{"team/dev", 100}, {"team/prod", 1000}, {"team/other", 900}} {
		w.submit(u.key, gpu("1"), priority(u.value))
		w.after(time.Second)
	}
	expectEvicted(t, w, "team/dev")
	other := w.units["team/other"].UID
	w.change("team/dev", func(u *scheduler.Unit) { u.Eviction.For = other }) // a late write of the previous leader
	w.stopEvicted()
	expectReleased(t, w, "team/prod")
	w.finish("team/prod")
	w.after(time.Minute)
	expectReleased(t, w, "team/other")
}

func TestRoomIsKeptForTheUnitThatAnotherProcessEvictsFor(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("5"), "a"))
	w.submitAll(cpu("5"), "a/running", "a/waiting")
	w.write("a/running", func(u *scheduler.Unit) {
		u.Evicted, u.Eviction = true, scheduler.Eviction{At: w.now, For: w.units["a/waiting"].UID}
	})
	w.after(time.Minute)
	w.expectPhase("a/waiting", scheduler.Waiting, wellknown.ReasonPreempting)
}

func TestRoomOfAnEvictionThatIsTakenBackIsNotKept(t *testing.T) {
	w := preempting(t, owning("team", nil, gpu("3")), "team")
	w.exact = false
	w.enqueue("team/one", gpu("2"), priority(100))
	w.write("team/one", deactivate)
	w.after(time.Second)
	w.submit("team/two", gpu("3"), priority(900))
	w.submit("team/small", gpu("1"), priority(1))
	w.after(time.Second)
	expectReleased(t, w, "team/one") // its room is kept for team/two
	w.write("team/one", func(u *scheduler.Unit) { u.Inactive, u.Evicted, u.Eviction = false, false, scheduler.Eviction{} })
	w.after(time.Minute)
	expectReleased(t, w, "team/one", "team/small")
}

func TestJobsOfARemovedQuotaAreReclaimed(t *testing.T) {
	w := reclaiming(t, owning("root", nil, cpu("10"), owning("a", cpu("6"), nil), owning("b", nil, nil)))
	w.exact = false
	w.enqueue("b/0", cpu("10"))
	w.plant(owning("root", nil, cpu("10"), owning("a", cpu("6"), nil), owning("c", nil, nil)))
	w.submit("a/owed", cpu("6"))
	w.after(time.Minute)
	w.expectWrites("b/0", scheduler.Evict, "Reclaimed")
	w.stopEvicted()
	expectReleased(t, w, "a/owed")
}

func TestARestartOrANewTreeDoesNotMakeEvictionsFaster(t *testing.T) {
	for name, change := range map[string]func(*world, int){
		"nothing": func(*world, int) {},
		"restart": func(w *world, _ int) { w.restart() },
		"tree": func(w *world, i int) {
			w.plant(owning("root", nil, cpu("10"), owning("a", cpu("6"), cpu(fmt.Sprint(20+i))), owning("b", nil, nil)))
		},
	} {
		for _, stops := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, victims stop: %t", name, stops), func(t *testing.T) {
				w := reclaiming(t, owning("root", nil, cpu("10"), owning("a", cpu("6"), nil), owning("b", nil, nil)))
				w.exact = false
				w.configure(scheduler.QueueChanged{Queue: "root-b", Preemption: scheduler.Preemption{MaxPerMinute: 1}})
				w.submitAll(cpu("1"), numbered("b", 10)...)
				w.enqueue("a/owed", cpu("6"))
				for i := range 5 {
					w.after(time.Second)
					if stops {
						w.stopEvicted()
					}
					change(w, i)
					w.settle()
				}
				if n := len(w.allEvictions()); n != 1 {
					t.Errorf("%d evictions in 5 s, want 1", n)
				}
				w.after(time.Minute)
				if n := len(w.allEvictions()); n != 2 {
					t.Errorf("%d evictions after another minute, want 2", n)
				}
			})
		}
	}
}

// The unit ahead is too large for the guarantee of its group, so the room would be reclaimed from it again.
func TestARoomThatIsReclaimedIsNotBorrowed(t *testing.T) {
	root := owning("root", nil, cpu("12"), owning("a", nil, nil, owning("b", cpu("3"), nil), owning("d", cpu("5"), nil)), owning("z", nil, nil))
	root.Children[0].Namespaces = []string{"a"}
	w := reclaiming(t, root)
	w.submit("z/workflow", cpu("6"), unstoppable(true))
	w.submit("d/0", cpu("2"))
	w.submit("a/x", cpu("2"))
	w.settle()
	w.now = w.now.Add(time.Second)
	w.submit("b/big", cpu("4"), priority(1))
	w.submit("b/owed", cpu("3"))
	for range 100 {
		w.after(time.Minute)
		w.stopEvicted()
	}
	if n := len(w.allEvictions()); n != 1 {
		t.Errorf("there are %d evictions: %s", n, w.story(20))
	}
	expectReleased(t, w, "b/owed", "d/0", "z/workflow")
}

// The guarantee of its department is too small to evict others for the unit. When a unit of its own quota ends, it
// still does not fit, but is within the guarantee of that quota.
func TestAUnitThatGetsARightWithoutRoomReclaims(t *testing.T) {
	w := reclaiming(t, owning("root", nil, cpu("5"), owning("department", cpu("4"), nil, owning("team", cpu("2"), nil)), owning("z", nil, nil)))
	w.enqueue("team/first", cpu("1"))
	w.submit("z/borrows", cpu("4"))
	w.after(time.Second)
	w.submit("team/second", cpu("2"))
	w.after(10 * time.Minute)
	expectEvicted(t, w)
	w.finish("team/first")
	w.after(time.Second)
	expectEvicted(t, w, "z/borrows")
}

// With both waiting units, d would borrow. So the one behind no longer has a right to what was reclaimed for it, and
// its request does not count as use of d that a running unit of d could be evicted for.
func TestARightThatHasEndedEvictsNobody(t *testing.T) {
	w := reclaiming(t, owning("root", nil, cpu("10"), owning("a", cpu("4"), nil), owning("d", cpu("6"), nil), owning("c", nil, nil)))
	w.submit("c/0", cpu("8"))
	w.after(time.Second)
	w.submit("d/low", cpu("4")) // c/0 is evicted for it
	w.after(time.Second)
	w.submit("d/high", cpu("2"), priority(1))
	w.after(time.Second)
	expectReleased(t, w, "c/0", "d/high")
	w.submit("d/high-2", cpu("2"), priority(1))
	w.after(40 * time.Second)
	w.enqueue("a/owed", cpu("3"))
	w.expectCount("d/high", scheduler.Evict, 0) // d uses 2 of 6 cpu
	w.stopEvicted()
	w.after(time.Minute)
	expectReleased(t, w, "a/owed", "d/high", "d/high-2")
}

// The unit behind borrows what no unit is owed. Without it, the quota would still be within its guarantee, so evicting
// c/0 would be useless if c/1 stayed.
func TestAUnitBehindEndsNobodysRight(t *testing.T) {
	for _, policy := range []*queue.Policy{queue.RoundRobin, queue.ShortestFirst} {
		t.Run(policy.Name, func(t *testing.T) {
			w := reclaiming(t, owning("root", nil, cpu("9"), owning("a", cpu("6"), nil), owning("c", nil, nil)))
			w.configure(scheduler.QueueChanged{Queue: "root-a", Policy: policy})
			w.configure(scheduler.QueueChanged{Queue: "root-c", Preemption: scheduler.Preemption{MaxPerMinute: 1}})
			w.submitAll(cpu("4"), "c/0", "c/1")
			w.submit("a/owed", cpu("6"), maxTime(24*time.Hour))
			w.after(31 * time.Second)
			w.submit("a/small", cpu("1"), maxTime(48*time.Hour))
			w.after(time.Second)
			expectReleased(t, w, "a/small", "c/0", "c/1")
			expectEvicted(t, w, "c/1")
			w.stopEvicted()
			w.after(2 * time.Minute)
			expectEvicted(t, w, "c/0")
			w.stopEvicted()
			expectReleased(t, w, "a/owed", "a/small")
		})
	}
}

// The unit that has borrowed cpu cannot be evicted. The one that has borrowed gpus holds enough of both. The order in
// which resources are named must not matter, because it changes with a restart.
func TestAVictimForOneResourceMayHelpWithAnother(t *testing.T) {
	for _, first := range []string{"cpu", "gpu"} {
		w := newWorld(t, roundRobin(), leaf("root", nil))
		w.names.ID(first)
		w.treeOpts.Reclaim = true
		w.plant(owning("root", nil, map[string]string{"cpu": "10", "gpu": "8"},
			owning("a", map[string]string{"cpu": "2", "gpu": "2"}, nil), owning("b", nil, nil),
			owning("d", map[string]string{"cpu": "5", "gpu": "2"}, nil)))
		w.submit("b/workflow", cpu("5"), unstoppable(true))
		w.submit("d/0", map[string]string{"cpu": "5", "gpu": "8"})
		w.settle()
		w.enqueue("a/owed", map[string]string{"cpu": "2", "gpu": "2"})
		expectEvicted(t, w, "d/0")
	}
}

// A node is drained: the operator replaces a pod while the old one terminates.
func TestAPodThatIsReplacedDoesNotMakeANonPreemptibleUnitAVictim(t *testing.T) {
	w := reclaiming(t, owning("root", nil, cpu("8"), owning("a", cpu("4"), cpu("8")), owning("b", cpu("4"), cpu("8"))))
	w.exact = false // pods are created without quota
	w.enqueue("a/prod", cpu("4"), preemptible(false))
	pod := func(uid string, terminating bool) {
		p := w.podOf("a/prod", uid, 4000)
		p.Terminating = terminating
		w.pod(p)
	}
	pod("old", false)
	w.after(time.Minute)
	pod("old", true)
	pod("new", false)
	w.submit("b/one", cpu("4"))
	w.after(time.Minute)
	expectEvicted(t, w)
	w.podGone("old")
	w.settle()
	if !holds(w.units["b/one"]) {
		t.Error("b/one waits although the old pod is gone")
	}
}

// It holds quota of the queue but is no longer in it, because its label names a quota that does not exist.
func TestAUnitThatHasNoQueueIsNotPreempted(t *testing.T) {
	w := reclaiming(t, owning("root", nil, cpu("4"), owning("a", nil, nil)))
	w.configure(scheduler.QueueChanged{Queue: "root-a", Preemption: scheduler.Preemption{WithinQueue: true}})
	w.submit("a/low", cpu("2"))
	w.submit("a/lost", cpu("2"))
	w.settle()
	w.change("a/lost", quotaName("of-no-group"))
	w.enqueue("a/high", cpu("2"), priority(1))
	w.expectWrites("a/lost", scheduler.Evict)
	w.expectWrites("a/low", scheduler.Evict, wellknown.ReasonPreempted)
}
