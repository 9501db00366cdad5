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

func TestBorrowingIsPausedWhileSomebodyWaitsForWhatTheyAreOwed(t *testing.T) {
	root := owning("root", nil, cpu("10"), owning("a", cpu("6"), nil), owning("b", cpu("2"), nil))
	for _, pausing := range []bool{false, true} {
		w := newWorld(t, roundRobin(), root)
		w.treeOpts.PauseBorrowing = pausing
		w.plant(root)
		w.submit("b/1", cpu("5"))
		w.submit("b/2", cpu("5"))
		w.settle()
		w.submit("a/owed", cpu("6"))
		w.submit("b/3", cpu("5"))
		w.after(time.Minute)
		w.finish("b/1")
		w.after(time.Minute)
		if !pausing {
			expectReleased(t, w, "b/2", "b/3")
			continue
		}
		expectReleased(t, w, "b/2")
		reported := w.writes("b/3", scheduler.Explain)
		if last := reported[len(reported)-1]; last.Reason != wellknown.ReasonBorrowingPaused ||
			last.Message != "borrowing of cpu is paused in quota root until a waiting job gets its guaranteed quota there: requested 5, used 10 and reserved 6 of max 10" {
			t.Errorf("b/3 is reported %s: %s", last.Reason, last.Message)
		}
		w.finish("b/2")
		w.settle()
		expectReleased(t, w, "a/owed") // four are left, which b would have to borrow
		w.submit("b/4", cpu("2"))
		w.settle()
		expectReleased(t, w, "a/owed", "b/4") // but not these
	}
}

func TestAPauseEndsWhenWhoIsOwedThinksBetterOfIt(t *testing.T) {
	root := owning("root", nil, cpu("10"), owning("a", cpu("6"), nil), owning("b", cpu("2"), nil))
	for name, leaves := range map[string]func(*world){
		"deleted":     func(w *world) { w.delete("a/owed") },
		"deactivated": func(w *world) { w.write("a/owed", deactivate) },
		"requests more than it is owed": func(w *world) {
			d := w.demand(cpu("7"))
			w.write("a/owed", func(u *scheduler.Unit) { u.Demand = d })
		},
		"its queue is stopped": func(w *world) {
			w.configure(scheduler.QueueChanged{Queue: "root-a", Stop: scheduler.Hold})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := pausing(t, root)
			w.submit("b/1", cpu("5"))
			w.settle()
			w.submit("a/owed", cpu("6"))
			w.settle()
			w.submit("b/2", cpu("5"))
			w.settle()
			expectReleased(t, w, "b/1")
			leaves(w)
			w.settle()
			expectReleased(t, w, "b/1", "b/2")
		})
	}
}

// owedInFront is a world in which a/owed, in front of a blocking queue, lacks one of
// the two cores that it is owed, for b/1 has borrowed it.
func owedInFront(t *testing.T) *world {
	root := owning("root", nil, cpu("10"), owning("a", cpu("4"), cpu("4")), owning("b", cpu("2"), nil))
	w := pausing(t, root)
	w.configure(scheduler.QueueChanged{Queue: "root-a", Policy: queue.Block})
	w.submit("b/1", cpu("7"))
	w.submit("a/runs", cpu("2"))
	w.settle()
	w.submit("a/owed", cpu("2"))
	w.settle()
	return w
}

// In a queue in which only the front is tried, a unit behind it is not admitted however much
// room there is.
func TestOnlyTheFrontOfABlockingQueuePausesBorrowing(t *testing.T) {
	w := owedInFront(t)
	w.submit("b/2", cpu("1"))
	w.settle()
	expectReleased(t, w, "a/runs", "b/1")
	w.submit("a/front", cpu("4"), priority(1)) // waits for its own group's max
	w.settle()
	expectReleased(t, w, "a/runs", "b/1", "b/2")
	w.finish("b/2")
	w.delete("a/front")
	w.settle()
	w.submit("b/3", cpu("1"))
	w.settle()
	expectReleased(t, w, "a/runs", "b/1") // a/owed is in front again
}

// Whether the one who is owed or the one who would borrow comes first: what is decided
// at one instant is decided with both known.
func TestNobodyBorrowsAtTheInstantAtWhichSomebodyIsRefusedWhatTheyAreOwed(t *testing.T) {
	root := owning("root", nil, cpu("10"), owning("a", cpu("6"), nil), owning("b", cpu("2"), nil), owning("c", cpu("2"), nil))
	for _, order := range [][]string{{"a/owed", "b/more", "c/more"}, {"b/more", "c/more", "a/owed"}, {"b/more", "a/owed", "c/more"}} {
		w := pausing(t, root)
		w.submit("b/1", cpu("5"))
		w.settle()
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

func TestWhatBorrowsNoMoreOfWhatIsPausedGoes(t *testing.T) {
	both := func(c, g string) map[string]string { return map[string]string{"cpu": c, "gpu": g} }
	root := owning("root", nil, both("16", "20"), owning("a", cpu("10"), nil), owning("b", both("4", "2"), nil))
	w := pausing(t, root)
	w.submit("b/borrowing", cpu("8"))
	w.submit("b/later", cpu("4"))
	w.settle()
	expectReleased(t, w, "b/borrowing", "b/later")
	w.submit("a/owed", cpu("10"))
	w.settle()
	// Of cpu it would stay within min, were b not above it; of gpus it borrows, which are not paused.
	w.submit("b/waits", both("2", "5"))
	w.settle()
	w.finish("b/borrowing")
	w.settle()
	expectReleased(t, w, "a/owed", "b/later", "b/waits")
}

func TestWhatBorrowsNoMoreOfWhatIsPausedGoesWhileItIsPaused(t *testing.T) {
	both := func(c, g string) map[string]string { return map[string]string{"cpu": c, "gpu": g} }
	root := owning("root", nil, both("16", "20"), owning("a", cpu("10"), nil), owning("b", both("4", "2"), nil), owning("c", nil, nil))
	w := pausing(t, root)
	w.submit("b/ends", cpu("4"))
	w.submit("c/borrows", cpu("9"))
	w.settle()
	w.submit("a/owed", cpu("10")) // 3 of 16 are free
	w.settle()
	w.submit("b/waits", both("2", "5")) // borrows cpu and gpu; only cpu is paused
	w.settle()
	expectReleased(t, w, "b/ends", "c/borrows")
	w.finish("b/ends") // b is owed the cpu now; 7 of 16 free
	w.settle()
	expectReleased(t, w, "b/waits", "c/borrows")
}

func TestWhoIsOwedPausesBorrowingWhenItsQueueBlocksNoMore(t *testing.T) {
	w := owedInFront(t)
	w.submit("a/front", cpu("4"), priority(1)) // waits for its own group's max
	w.settle()
	w.configure(scheduler.QueueChanged{Queue: "root-a", Policy: queue.RoundRobin})
	w.settle()
	w.submit("b/2", cpu("1"))
	w.settle()
	expectReleased(t, w, "a/runs", "b/1")
}

func TestBorrowingIsPausedForAllThatTheOneWhoIsOwedLacks(t *testing.T) {
	both := func(c, m string) map[string]string { return map[string]string{"cpu": c, "memory": m} }
	root := owning("root", nil, both("10", "10"), owning("a", both("6", "6"), nil), owning("b", nil, nil))
	w := pausing(t, root)
	w.submit("b/cpu", cpu("6"))
	w.settle()
	w.submit("a/owed", both("6", "6")) // lacks cpu
	w.settle()
	w.submit("b/memory-1", map[string]string{"memory": "5"}) // and now memory
	w.settle()
	w.submit("b/memory-2", map[string]string{"memory": "3"})
	w.settle()
	expectReleased(t, w, "b/cpu", "b/memory-1")
}

func TestWhoIsOwedTwoResourcesIsNotStarvedByTurns(t *testing.T) {
	both := func(c, m string) map[string]string { return map[string]string{"cpu": c, "memory": m} }
	root := owning("root", nil, both("10", "10"), owning("a", both("6", "6"), nil), owning("b", nil, nil))
	w := pausing(t, root)
	w.submit("b/cpu-0", cpu("6"))
	w.submit("b/memory-0", map[string]string{"memory": "6"})
	w.settle()
	w.submit("a/owed", both("6", "6"))
	w.settle()
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

func TestAnInnerGroupThatBorrowsOnceTheGroupBelowTookItsMinIsPaused(t *testing.T) {
	inner := owning("inner", cpu("4"), nil, owning("below", nil, cpu("8")))
	inner.Namespaces = []string{"inner"}
	w := pausing(t, owning("root", nil, cpu("20"), inner, owning("a", cpu("10"), nil), owning("b", nil, nil)))
	w.submit("b/1", cpu("11"))
	w.settle()
	w.submit("a/owed", cpu("10"))
	w.settle()
	w.submit("below/1", cpu("4"))
	w.settle()
	w.submit("inner/1", cpu("3"))
	w.settle()
	expectReleased(t, w, "b/1", "below/1")
}

func TestWhoIsOwedNoMoreAndThenAgainPausesBorrowingThen(t *testing.T) {
	w := pausing(t, owning("root", nil, cpu("10"), owning("a", cpu("6"), nil), owning("b", nil, nil)))
	w.submit("b/1", cpu("6"))
	w.settle()
	w.submit("a/owed", cpu("6"))
	w.settle()
	w.submit("a/small", cpu("1")) // with it a/owed would borrow
	w.settle()
	w.submit("b/2", cpu("1"))
	w.settle()
	expectReleased(t, w, "a/small", "b/1", "b/2")
	w.finish("a/small")
	w.settle()
	w.submit("b/3", cpu("1"))
	w.settle()
	expectReleased(t, w, "b/1", "b/2")
}

func TestTheFrontOfABlockingQueueClaimsOnlyWhatItIsOwedNow(t *testing.T) {
	w := pausing(t, owning("root", nil, cpu("10"), owning("a", cpu("4"), nil), owning("b", nil, nil)))
	w.configure(scheduler.QueueChanged{Queue: "root-a", Policy: queue.Block})
	w.submit("b/1", cpu("8"))
	w.settle()
	w.submit("a/owed", cpu("3"))
	w.settle()
	w.submit("a/first", cpu("2"), priority(1)) // takes its place, and part of the min
	w.settle()
	w.submit("b/2", cpu("1"))
	w.settle()
	expectReleased(t, w, "a/first", "b/1") // nothing is left
	w.finish("b/1")
	w.settle()
	expectReleased(t, w, "a/first", "a/owed", "b/2")
}

// It was refused for less when it was last tried.
func TestWhoComesBackToTheFrontClaimsWhatItLacksThen(t *testing.T) {
	w := pausing(t, owning("root", nil, cpu("8"), owning("inner", nil, cpu("4"), owning("a", cpu("2"), nil), owning("b", nil, nil)), owning("c", nil, nil)))
	w.configure(scheduler.QueueChanged{Queue: "root-inner-a", Policy: queue.Block})
	w.submit("b/1", cpu("4"))
	w.settle()
	w.submit("a/owed", cpu("2")) // lacks room in inner
	w.settle()
	w.submit("a/first", cpu("3"), priority(1)) // would borrow
	w.submit("c/1", cpu("2"))
	w.submit("c/2", cpu("2"))
	w.settle()
	w.delete("a/first")
	w.settle() // now it lacks room in root too
	w.finish("c/1")
	w.submit("c/3", cpu("2"))
	w.settle()
	expectReleased(t, w, "b/1", "c/2")
	w.finish("b/1")
	w.settle()
	expectReleased(t, w, "a/owed", "c/2", "c/3")
}

func TestWhatIsPausedForAUnitIsNotPausedForIt(t *testing.T) {
	w := pausing(t, owning("root", nil, map[string]string{"cpu": "10", "gpu": "8"},
		owning("a", map[string]string{"gpu": "4"}, nil), owning("b", nil, nil)))
	w.submit("b/1", cpu("8"))
	w.settle()
	w.submit("a/owed", map[string]string{"cpu": "5", "gpu": "4"}) // min does not name cpu
	w.settle()
	w.finish("b/1")
	w.settle()
	expectReleased(t, w, "a/owed")
}

func TestBorrowingIsPausedOfNothingElseThanWhatLacks(t *testing.T) {
	both := func(c, g string) map[string]string { return map[string]string{"cpu": c, "gpu": g} }
	w := pausing(t, owning("root", nil, both("10", "10"), owning("a", both("6", "2"), nil), owning("b", nil, nil)))
	w.submit("b/1", cpu("6"))
	w.settle()
	w.submit("a/owed", both("6", "2"))
	w.settle()
	w.submit("b/gpu", map[string]string{"gpu": "1"})
	w.settle()
	expectReleased(t, w, "b/1", "b/gpu")
}

// Two blocking queues: at one instant one gives its claim up and the other takes one. Whether a
// shape that waits for the pause to end is tried in between, and its backoff doubled, is up to
// the order of a map.
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
		w.submit("b/owed", cpu("2"))
		w.settle()
		w.submit("b/front", cpu("4"), priority(1)) // no claim of b
		w.settle()
		w.submit("c/1", cpu("1"))
		w.settle()
		w.after(5 * time.Second)
		w.submit("a/front", cpu("4"), priority(1)) // a gives its claim up,
		w.delete("b/front")                        // and b has one again
		w.settle()
		w.after(500 * time.Millisecond)
		w.submit("c/2", map[string]string{"cpu": "500m"})
		w.settle()
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
