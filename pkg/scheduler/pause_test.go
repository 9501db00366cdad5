package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func TestAUnitThatWouldBorrowWhatAnotherIsOwedShowsThatBorrowingIsPaused(t *testing.T) {
	w := pausing(t, owning("root", nil, cpu("10"), owning("a", cpu("6"), nil), owning("b", cpu("2"), nil)))
	w.submit("b/1", cpu("5"))
	w.submit("b/2", cpu("5"))
	w.settle()
	w.submit("a/owed", cpu("6"))
	w.submit("b/3", cpu("5"))
	w.after(time.Minute)
	w.finish("b/1")
	w.after(time.Minute)
	expectReleased(t, w, "b/2")
	if reported := last(w.writes("b/3", scheduler.Explain)); reported.Reason != wellknown.ReasonBorrowingPaused ||
		reported.Message != "borrowing of cpu is paused in quota root until a waiting job gets its guaranteed quota there: requested 5, used 10 and reserved 6 of max 10" {
		t.Errorf("b/3 is reported %s: %s", reported.Reason, reported.Message)
	}
}

// It does not matter whether the unit that is owed or the one that would borrow comes first: decisions at one instant
// consider both.
func TestNobodyBorrowsAtTheInstantAtWhichSomebodyIsRefusedWhatTheyAreOwed(t *testing.T) {
	root := owning("root", nil, cpu("10"), owning("a", cpu("6"), nil), owning("b", cpu("2"), nil), owning("c", cpu("2"), nil))
	for _, order := range [][]string{{"a/owed", "b/more", "c/more"}, {"b/more", "c/more", "a/owed"}, {"b/more", "a/owed", "c/more"}} {
		w := pausing(t, root)
		w.enqueue("b/1", cpu("5"))
		for _, key := range order {
			asks := cpu("3")
			if key == "a/owed" {
				asks = cpu("6")
			}
			w.submit(key, asks)
		}
		w.after(time.Minute)
		expectReleased(t, w, "b/1")
	}
}

func TestWhoIsOwedPausesBorrowingWhenItsQueueBlocksNoMore(t *testing.T) {
	w := owedInFront(t)
	w.enqueue("a/front", cpu("4"), priority(1)) // waits for its own group's max
	w.configure(scheduler.QueueChanged{Queue: "root-a", Policy: queue.RoundRobin})
	w.settle()
	w.enqueue("b/2", cpu("1"))
	expectReleased(t, w, "a/runs", "b/1")
}

func TestWhoIsOwedTwoResourcesIsNotStarvedByTurns(t *testing.T) {
	both := func(c, m string) map[string]string { return map[string]string{"cpu": c, "memory": m} }
	root := owning("root", nil, both("10", "10"), owning("a", both("6", "6"), nil), owning("b", nil, nil))
	w := pausing(t, root)
	w.submit("b/cpu-0", cpu("6"))
	w.submit("b/memory-0", map[string]string{"memory": "6"})
	w.settle()
	w.enqueue("a/owed", both("6", "6"))
	for i := range 20 {
		w.submit(fmt.Sprintf("b/cpu-%d", i+1), cpu("6"))
		w.submit(fmt.Sprintf("b/memory-%d", i+1), map[string]string{"memory": "6"})
		w.settle()
		for _, kind := range []string{"cpu", "memory"} {
			for _, key := range w.released() {
				if len(key) > 2+len(kind) && key[2:2+len(kind)] == kind {
					w.finish(key)
					break
				}
			}
			w.settle()
			for _, key := range w.released() {
				if key == "a/owed" {
					return
				}
			}
		}
	}
	t.Fatalf("a/owed waits after 40 ends; %d units were released", len(w.landed))
}

func TestBorrowingIsPausedOfNothingElseThanWhatLacks(t *testing.T) {
	both := func(c, g string) map[string]string { return map[string]string{"cpu": c, "gpu": g} }
	w := pausing(t, owning("root", nil, both("10", "10"), owning("a", both("6", "2"), nil), owning("b", nil, nil)))
	w.enqueue("b/1", cpu("6"))
	w.enqueue("a/owed", both("6", "2"))
	w.enqueue("b/gpu", map[string]string{"gpu": "1"})
	expectReleased(t, w, "b/1", "b/gpu")
}

// Of two blocking queues, one gives up its claim and the other makes one at the same instant. A map order must not
// decide whether a shape that waits for the pause to end is tried in between, which doubles its backoff.
func TestClaimsThatChangeHandsAreTheSameEachTime(t *testing.T) {
	first := ""
	for run := range 40 {
		var children []tree.Node
		for _, name := range []string{"a", "b"} {
			children = append(children, owning(name, cpu("4"), cpu("4")))
		}
		children = append(children, owning("c", cpu("1"), nil), owning("d", cpu("1"), nil))
		root := owning("root", nil, cpu("20"), children...)
		w := pausing(t, root)
		for _, name := range []string{"a", "b"} {
			w.configure(scheduler.QueueChanged{Queue: "root-" + name, Policy: queue.Block})
		}
		w.submit("c/runs", cpu("13"))
		w.submit("a/runs", cpu("2"))
		w.submit("b/runs", cpu("2"))
		w.submit("d/runs", cpu("2"))
		w.settle() // 1 is free
		w.submit("a/owed", cpu("2"))
		w.settle() // claims
		w.enqueue("b/owed", cpu("2"))
		w.enqueue("b/front", cpu("4"), priority(1)) // no claim of b
		w.enqueue("c/1", cpu("1"))
		w.after(5 * time.Second)
		w.submit("a/front", cpu("4"), priority(1)) // a gives its claim up,
		w.delete("b/front")                        // and b has one again
		w.after(500 * time.Millisecond)
		w.enqueue("c/2", map[string]string{"cpu": "500m"})
		w.after(1300 * time.Millisecond)
		w.delete("b/owed")
		w.settle()
		got := fmt.Sprint(w.released())
		if run == 0 {
			first = got
		} else if got != first {
			t.Fatalf("run %d: released %s, in the first run %s", run, got, first)
		}
	}
}

// owedInFront returns a world in which a/owed, in front of a blocking queue, lacks one of the two cores that it is
// owed, because b/1 has borrowed it.
func owedInFront(t *testing.T) *world {
	root := owning("root", nil, cpu("10"), owning("a", cpu("4"), cpu("4")), owning("b", cpu("2"), nil))
	w := pausing(t, root)
	w.configure(scheduler.QueueChanged{Queue: "root-a", Policy: queue.Block})
	w.submit("b/1", cpu("7"))
	w.submit("a/runs", cpu("2"))
	w.settle()
	w.enqueue("a/owed", cpu("2"))
	return w
}

// In a queue that only tries its front, a unit behind it is not admitted no matter how much room there is.
func TestOnlyTheFrontOfABlockingQueuePausesBorrowing(t *testing.T) {
	w := owedInFront(t)
	w.enqueue("b/2", cpu("1"))
	expectReleased(t, w, "a/runs", "b/1")
	w.enqueue("a/front", cpu("4"), priority(1)) // waits for its own group's max
	expectReleased(t, w, "a/runs", "b/1", "b/2")
	w.finish("b/2")
	w.delete("a/front")
	w.settle()
	w.enqueue("b/3", cpu("1"))
	expectReleased(t, w, "a/runs", "b/1") // a/owed is in front again
}
