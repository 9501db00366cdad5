package scheduler_test

import (
	"testing"
	"time"
	"unsafe"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// expectPods expects that the unit holds quota with this many pods, and is charged for them.
func expectPods(t *testing.T, w *world, key string, pods int32) {
	t.Helper()
	u := w.units[key]
	if !holds(u) {
		t.Fatalf("%s waits: %s", key, u.Reason)
	}
	if got := podsOf(u); got != pods {
		t.Fatalf("%s holds quota with %d pods, want %d", key, got, pods)
	}
	if c := w.core.ChargeOf(key); c == nil || !c.Demand.Equal(askedWith(u, pods)) {
		t.Fatalf("%s is charged %+v for %d pods", key, c, pods)
	}
}

// Units that are admitted later in the same round get what is left.
func TestTheFirstElasticUnitGrowsBeforeTheNextUnitIsTried(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.Block}, leaf("a", cpu("8"), "a"))
	w.submit("a/1", cpu("10"), w.elastic(4, 10))
	w.submit("a/2", cpu("10"), w.elastic(2, 10))
	w.settle()
	expectPods(t, w, "a/1", 8)
	expectReleased(t, w, "a/1")
	w.finish("a/1")
	w.submit("a/3", cpu("6"), w.elastic(1, 3), priority(1))
	w.settle()
	expectPods(t, w, "a/3", 3)
	expectPods(t, w, "a/2", 2)
}

// A unit that grows beyond the guarantee of its group borrows, and others that are owed quota come first.
func TestAnElasticUnitBorrowsNothingThatAnotherUnitIsOwedWhichIsTriedNext(t *testing.T) {
	root := owning("root", nil, cpu("10"),
		owning("a", cpu("2"), cpu("10")), owning("b", cpu("5"), cpu("10")))
	w := newWorld(t, roundRobin(), root)
	w.submit("a/elastic", cpu("10"), w.elastic(2, 10))
	w.submit("b/1", cpu("4"))
	w.submit("b/2", cpu("4"))
	w.settle()
	expectPods(t, w, "a/elastic", 6)
	expectReleased(t, w, "a/elastic", "b/1")
}

func TestNobodyIsEvictedSoThatAnElasticUnitHasMorePods(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("a", cpu("10"), "a"))
	w.treeOpts.Reclaim = true
	w.plant(w.root)
	w.configure(scheduler.QueueChanged{Queue: "a", Preemption: scheduler.Preemption{WithinQueue: true}})
	for _, key := range []string{"a/1", "a/2", "a/3", "a/4", "a/5"} {
		w.submit(key, cpu("2"))
	}
	w.settle()
	w.enqueue("a/elastic", cpu("10"), w.elastic(3, 10), priority(5))
	evicted := w.evicted()
	if len(evicted) != 2 {
		t.Fatalf("evicted are %v, want two units of 2 cpu for 3", evicted)
	}
	for _, key := range evicted {
		w.write(key, stop)
	}
	w.settle()
	expectPods(t, w, "a/elastic", 4)
	if again := w.evicted(); len(again) > 0 {
		t.Fatalf("%v are evicted after it has started", again)
	}
}

// Once, a/low, b/many and a/high evicted each other in turns: each was owed its least pods, and borrowed for the
// others.
func TestAnElasticUnitThatWasOwedRoomBorrowsNothingForMorePods(t *testing.T) {
	w := reclaiming(t, owning("root", nil, cpu("13"), owning("inner", nil, cpu("6"), owning("a", cpu("3"), nil), owning("b", cpu("3"), nil)), owning("c", cpu("2"), nil)))
	w.configure(scheduler.QueueChanged{Queue: "root-inner-a", Preemption: scheduler.Preemption{WithinQueue: true}})
	w.configure(scheduler.QueueChanged{Queue: "root-inner-b", Preemption: scheduler.Preemption{WithinQueue: true, MaxPerMinute: 1}})
	w.submit("b/large", cpu("5"))
	w.submit("b/fixed", cpu("1"), priority(1), unstoppable(true))
	w.after(17 * time.Second)
	w.submit("a/low", cpu("2"), priority(1), w.elastic(1, 2))
	w.after(3 * time.Second)
	w.stopEvicted()
	w.after(7 * time.Second)
	w.submit("b/many", cpu("4"), w.elastic(2, 6))
	w.after(9 * time.Second)
	w.submit("b/waits", cpu("4"), priority(3)) // it hides that b/many is owed room
	w.submit("a/waits", cpu("4"), priority(3))
	w.submit("a/high", cpu("2"), priority(3))
	w.after(17 * time.Second)
	w.rest()
	expectReleased(t, w, "a/high", "a/low", "b/fixed", "b/many")
	expectPods(t, w, "a/low", 1)
	expectPods(t, w, "b/many", 2)
}

// An admission that waits for another write of the unit keeps its number of pods when the unit changes.
func TestAnElasticUnitKeepsItsPodsWhileItsAdmissionIsNotWritten(t *testing.T) {
	for name, change := range map[string]func(*world){
		"its priority changes":         func(w *world) { w.write("a/elastic", priority(3)) },
		"it must start with more pods": func(w *world) { w.write("a/elastic", w.elastic(5, 10)) },
		"it must start with too many":  func(w *world) { w.write("a/elastic", w.elastic(7, 10)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, roundRobin(), leaf("a", cpu("6"), "a"))
			w.enqueue("a/first", cpu("3"))
			w.submit("a/elastic", cpu("10"), w.elastic(4, 10))
			for len(w.sent) == 0 { // until the reason why it waits is being written
				w.now = w.now.Add(time.Second)
				for len(w.news) > 0 {
					w.deliver()
				}
				w.think()
			}
			w.finish("a/first")
			w.hearAndThink()
			if c := w.core.ChargeOf("a/elastic"); c == nil {
				t.Fatal("it is not admitted")
			}
			change(w)
			w.deliver()
			w.settle()
			if u := w.units["a/elastic"]; u.Elastic.Min > 6 {
				if holds(u) {
					t.Fatal("it holds quota")
				}
				return
			}
			expectPods(t, w, "a/elastic", 6)
		})
	}
}

// Most units are not elastic, and there may be a million waiting ones.
func TestAUnitFitsIntoItsSizeClass(t *testing.T) {
	if size := unsafe.Sizeof(scheduler.AUnit); size > 384 {
		t.Errorf("a unit has %d bytes, and the next size class of the allocator is 416", size)
	}
}
