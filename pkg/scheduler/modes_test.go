package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func TestTheLargeUnitInFrontOfTenThousandSmallOnesIsNext(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.Block}, leaf("root", cpu("100"), "a"))
	w.unproven = true
	for i := range 100 {
		w.submit(fmt.Sprintf("a/running-%03d", i), cpu("1"))
	}
	w.settle()
	w.submit("a/large", cpu("100"))
	for i := range 10_000 {
		w.submit(fmt.Sprintf("a/small-%05d", i), cpu("1"))
	}
	w.settle()
	for i := range 100 {
		if got := len(w.released()); got != 100-i {
			t.Fatalf("after %d ends %d units run: something passed the large one", i, got)
		}
		w.finish(fmt.Sprintf("a/running-%03d", i))
		w.settle()
	}
	expectReleased(t, w, "a/large")
	w.finish("a/large")
	w.settle()
	w.unproven = false
	w.check()
	if got := w.released(); len(got) != 100 || got[0] != "a/small-00000" || got[99] != "a/small-00099" {
		t.Fatalf("after the large one: %d units, from %s", len(got), got[0])
	}
}

// StrictConsistency: whatever each of them has been through, the highest-priority
// earliest unit that fits is the next, backoff or not.
func TestPropertyWithPriorityTheFirstThatFitsIsNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, scheduler.Options{Policy: queue.Priority}, leaf("root", cpu("10"), "a"))
		fill(t, w)
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			w.after(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms")) * time.Millisecond)
			endSome(t, w)
			for len(w.news) > 0 {
				w.deliver()
			}
			want := expectedReleases(w)
			w.think()
			if got := releases(w.sent); !slices.Equal(got, want) {
				t.Fatalf("released are %v, want %v", got, want)
			}
			w.settle()
			fill(t, w)
		}
	})
}

// RoundRobin: no room stays idle that a unit could use, whatever is in backoff.
func TestPropertyInRoundRobinNoRoomIsIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, roundRobin(), owning("root", nil, cpu("12"), owning("a", nil, cpu("10")), owning("b", nil, cpu("10"))))
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			fill(t, w)
			endSome(t, w)
			w.settle()
			o := w.oracle()
			for _, u := range w.units {
				group, _ := w.tree.Place(u.Namespace(), u.QuotaName)
				if u.Phase == scheduler.Waiting && o.Refuses(group.Path(), asked(u)) == "" {
					t.Fatalf("unit %s fits and waits", u.Key)
				}
			}
			w.after(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms")) * time.Millisecond)
		}
	})
}

func fill(t *rapid.T, w *world) {
	for range rapid.IntRange(0, 6).Draw(t, "submitted") {
		key := fmt.Sprintf("%s/%04d", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), w.version)
		w.submit(key, cpu(fmt.Sprint(rapid.IntRange(1, 11).Draw(t, "cpu"))), priority(int32(rapid.IntRange(0, 2).Draw(t, "priority"))))
	}
}

func releases(plan scheduler.Plan) (keys []string) {
	for _, w := range plan {
		if w.Kind == scheduler.Dequeue {
			keys = append(keys, w.Key)
		}
	}
	return keys
}

// Room is freed while a refusal of the unit is being written: neither the write nor
// its outcome may hide that.
func TestRoomFreedWhileAWriteIsUnderWayIsNotLost(t *testing.T) {
	for _, policy := range queue.Policies() {
		w := newWorld(t, scheduler.Options{Policy: policy}, leaf("root", cpu("4"), "a"))
		w.submit("a/one", cpu("4"))
		w.settle()
		w.submit("a/two", cpu("4"))
		w.deliver()
		w.think()
		w.now = w.now.Add(2 * scheduler.ReasonDelay)
		w.think()
		if len(w.sent) != 1 || w.sent[0].Kind != scheduler.Explain {
			t.Fatalf("%s: under way are %+v, want the explanation", policy, w.sent)
		}
		w.finish("a/one")
		w.deliver()
		w.think() // the release has to wait for the outcome
		w.land(0)
		w.settle()
		expectReleased(t, w, "a/two")
	}
}

func TestEqualPriorityKeepsSubmissionOrderAcrossRestartAndRequeue(t *testing.T) {
	for _, policy := range queue.Policies() {
		w := newWorld(t, scheduler.Options{Policy: policy}, leaf("root", cpu("1"), "a"))
		for _, key := range []string{"a/1", "a/2", "a/3"} {
			w.submit(key, cpu("1"))
			w.after(time.Second)
		}
		expectReleased(t, w, "a/1")
		w.restart()
		w.settle()
		w.write("a/1", deactivate) // evicted, stopped and wanted again: it was the first
		w.settle()
		w.write("a/1", stop)
		w.settle()
		expectReleased(t, w, "a/2")
		w.write("a/1", activate)
		w.settle()
		for _, key := range []string{"a/2", "a/1"} {
			w.restart()
			w.finish(key)
			w.settle()
		}
		expectReleased(t, w, "a/3")
		if n := len(w.writes("a/1", scheduler.Dequeue)); n != 2 {
			t.Errorf("%s: a/1 was released %d times, want 2", policy, n)
		}
	}
}

func TestAStoppedQueueHoldsOrDrainsAndGoesOn(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", nil, cpu("4"), owning("a", nil, nil), owning("b", nil, nil)))
	w.submit("a/1", cpu("2"))
	w.settle()
	w.configure(scheduler.QueueChanged{Queue: "root-a", Stop: scheduler.Hold})
	w.submit("a/2", cpu("2"))
	w.after(2 * time.Second)
	expectReleased(t, w, "a/1")
	const stopped = "queue root-a is stopped; an administrator resumes it by setting spec.stop to None"
	if reported := w.writes("a/2", scheduler.Explain); len(reported) != 1 || reported[0].Reason != wellknown.ReasonQueueStopped || reported[0].Message != stopped {
		t.Fatalf("a/2 reports %+v", reported)
	}
	w.configure(scheduler.QueueChanged{Queue: "root-a", Stop: scheduler.Drain})
	w.settle()
	if evicted := w.writes("a/1", scheduler.Evict); len(evicted) != 1 || evicted[0].Reason != wellknown.ReasonQueueStopped {
		t.Fatalf("evictions: %+v", evicted)
	}
	w.submit("b/1", cpu("4"))
	w.settle()
	expectReleased(t, w, "a/1") // still charged: its job has not stopped
	w.write("a/1", stop)
	w.settle()
	expectReleased(t, w, "b/1")
	if back := w.writes("a/1", scheduler.Requeue); len(back) != 1 || back[0].Reason != wellknown.ReasonQueueStopped {
		t.Fatalf("a/1 is back with %+v", back)
	}
	w.configure(scheduler.QueueChanged{Queue: "root-a"})
	w.finish("b/1")
	w.settle()
	expectReleased(t, w, "a/1", "a/2")
}

func TestAQueueCapsThePriorityOfItsUnits(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("1"), "a"))
	w.configure(scheduler.QueueChanged{Queue: "root", MaxPriority: scheduler.Cap{Set: true, Value: 5}})
	w.submit("a/running", cpu("1"))
	w.settle()
	for _, key := range []string{"a/5", "a/100"} { // equals here, in this order
		w.submit(key, cpu("1"), priority(map[string]int32{"a/5": 5, "a/100": 100}[key]))
		w.after(time.Second)
	}
	w.finish("a/running")
	w.settle()
	expectReleased(t, w, "a/5")
	w.configure(scheduler.QueueChanged{Queue: "root"})
	w.submit("a/7", cpu("1"), priority(7))
	w.settle()
	w.finish("a/5")
	w.settle()
	expectReleased(t, w, "a/100") // not capped any more
}

func TestAnImpossibleUnitNeverBlocksAPossibleOneWhateverMakesItImpossible(t *testing.T) {
	for _, policy := range queue.Policies() {
		root := owning("root", nil, cpu("8"), owning("a", cpu("2"), cpu("4")))
		w := newWorld(t, scheduler.Options{Policy: policy}, root)
		w.submit("a/above-max", cpu("5"), priority(9))
		w.submit("a/above-min", cpu("3"), priority(8), preemptible(false))
		w.submit("a/held", cpu("1"), priority(7), deactivate)
		w.submit("a/elsewhere", cpu("1"), priority(6), quotaName("nothing"))
		w.submit("a/possible", cpu("4"))
		w.settle()
		expectReleased(t, w, "a/possible")
	}
}

// One unit's group is an inner node of the tree: it competes with the groups below.
func TestAnInnerNodeIsAGroupBesideThoseBelowIt(t *testing.T) {
	inner := owning("inner", cpu("4"), cpu("6"), owning("below", cpu("2"), nil))
	inner.Namespaces = []string{"inner"}
	w := newWorld(t, roundRobin(), tree.Node{Name: "root", Max: quantities(cpu("8")), Children: []tree.Node{inner}})
	for i := range 4 {
		w.submit(fmt.Sprintf("inner/%d", i), cpu("2"))
		w.submit(fmt.Sprintf("below/%d", i), cpu("2"))
	}
	w.settle()
	if a, b := count(w, "inner"), count(w, "below"); a+b != 3 || b == 0 {
		t.Fatalf("inner has %d and below %d, want 3 in all", a, b)
	}
	var reported []scheduler.Write
	w.after(2 * time.Second)
	for i := range 4 {
		reported = append(reported, w.writes(fmt.Sprintf("inner/%d", i), scheduler.Explain)...)
	}
	for _, e := range reported {
		if e.Reason != wellknown.ReasonQuotaExceeded {
			t.Errorf("%s is reported %s", e.Key, e.Reason)
		}
	}
}

func TestBackoffDoesNotCountOnceThePolicyIsAnother(t *testing.T) {
	for _, tried := range []bool{true, false} {
		w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
		if tried { // and refused, so that it is in backoff
			w.submit("a/holder", cpu("4"))
			w.settle()
		}
		w.submit("a/high", cpu("3"), priority(10))
		if tried {
			w.settle()
		} else {
			w.deliver()
		}
		w.now = w.now.Add(100 * time.Millisecond)
		w.configure(scheduler.QueueChanged{Queue: "root", Policy: queue.Priority})
		if tried {
			w.finish("a/holder")
		}
		w.submit("a/low", cpu("2"))
		w.settle()
		expectReleased(t, w, "a/high")
	}
}
