package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func cpuGPU(cpu, gpu string) map[string]string {
	return map[string]string{"cpu": cpu, "gpu": gpu}
}

// A guarantee of gpus is no guarantee of cpu, and nobody has borrowed the cpu that is lacking.
func TestBorrowingIsNotPausedForWhatMinDoesNotName(t *testing.T) {
	w := pausing(t, owning("root", nil, cpuGPU("12", "4"),
		owning("a", cpu("5"), nil), owning("b", map[string]string{"gpu": "1"}, nil)))
	w.submit("a/runs", cpu("5"))
	w.settle()
	w.submit("b/wants", cpuGPU("10", "1"))
	w.settle()
	w.submit("a/borrows", cpu("7"))
	w.after(24 * time.Hour)
	expectReleased(t, w, "a/borrows", "a/runs")
}

// What is lacking is guaranteed, but to a group that lacks something else too: it would wait in any case.
func TestBorrowingIsNotPausedForAUnitThatLacksWhatMinDoesNotName(t *testing.T) {
	w := pausing(t, owning("root", nil, cpuGPU("10", "4"),
		owning("a", map[string]string{"gpu": "2"}, nil), owning("b", cpu("10"), nil), owning("c", nil, nil)))
	w.submit("b/runs", cpu("8"))
	w.submit("c/borrows", map[string]string{"gpu": "3"})
	w.settle()
	w.submit("a/wants", cpuGPU("5", "2")) // lacks gpus, which are guaranteed to it, and cpu, which is not
	w.settle()
	w.submit("c/more", map[string]string{"gpu": "1"})
	w.settle()
	expectReleased(t, w, "b/runs", "c/borrows", "c/more")
	w.finish("b/runs")
	w.settle()
	w.finish("c/more") // now it lacks nothing but its gpus, and they are kept for it
	w.settle()
	w.submit("c/last", map[string]string{"gpu": "1"})
	w.settle()
	expectReleased(t, w, "c/borrows")
	w.finish("c/borrows")
	w.settle()
	expectReleased(t, w, "a/wants", "c/last")
}

func TestBorrowingIsPausedOnlyWhileSomebodyBorrows(t *testing.T) {
	// Both mins of a and b can never be met at once, because the guarantee is capped at the max of root.
	w := pausing(t, owning("root", nil, cpu("10"), owning("left", nil, nil, owning("a", cpu("8"), nil)),
		owning("right", nil, nil, owning("b", cpu("8"), nil)), owning("c", nil, map[string]string{"cpu": "10", "gpu": "1"})))
	w.submit("a/runs", cpu("8"))
	w.settle()
	w.submit("b/wants", cpu("8"))
	w.settle()
	w.submit("c/takes", cpu("2"))
	w.settle()
	expectReleased(t, w, "a/runs", "c/takes")
}

// A job that is never a victim must not take what is guaranteed to others, because they could not get it
// back.
func TestANonPreemptibleUnitLeavesWhatIsGuaranteedToOthers(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", nil, cpuGPU("10", "4"),
		owning("a", map[string]string{"gpu": "2"}, nil), owning("b", cpu("8"), nil)))
	w.submit("a/large", cpuGPU("10", "1"), preemptible(false))
	w.after(2 * time.Second)
	expectReleased(t, w)
	if found := w.writes("a/large", scheduler.Explain); len(found) != 1 || found[0].Reason != wellknown.ReasonExceedsMinQuota {
		t.Fatalf("a job that can never leave what is guaranteed to others is explained by %+v", found)
	}
	w.submit("a/small", cpuGPU("2", "1"), preemptible(false))
	w.settle()
	w.submit("a/next", cpuGPU("1", "1"), preemptible(false))
	w.submit("a/victim", cpuGPU("4", "1"))
	w.after(2 * time.Second)
	expectReleased(t, w, "a/small", "a/victim")
	want := "insufficient cpu for non-preemptible jobs in quota root: requested 1, used 2 of 2 that is not guaranteed to any quota"
	if found := w.writes("a/next", scheduler.Explain); len(found) != 1 || found[0].Message != want {
		t.Fatalf("explained by %+v, want %s", found, want)
	}
	w.finish("a/small")
	w.settle()
	expectReleased(t, w, "a/next", "a/victim")
}

func TestANonPreemptibleUnitOfAnInnerGroupLeavesWhatIsGuaranteedBelowIt(t *testing.T) {
	inner := owning("inner", cpu("6"), cpu("6"), owning("below", cpu("4"), nil))
	inner.Namespaces = []string{"inner"}
	w := newWorld(t, roundRobin(), owning("root", nil, cpu("10"), inner))
	w.submit("inner/large", cpu("3"), preemptible(false))
	w.submit("inner/small", cpu("2"), preemptible(false))
	w.submit("below/own", cpu("4"), preemptible(false))
	w.settle()
	expectReleased(t, w, "below/own", "inner/small")
}

// A thousand units wait for what they are owed. An admission that changes nothing for them asks none.
func TestAChargeConcernsOnlyTheReservationsThatItChanges(t *testing.T) {
	for _, n := range []int{10, 1000} {
		root := owning("root", nil, map[string]string{"cpu": "100000", "memory": "100"}, owning("b", nil, nil))
		for i := range 10 {
			root.Children = append(root.Children, owning(fmt.Sprintf("g%d", i), cpu("10000"), nil))
		}
		w := pausing(t, root)
		w.unproven = true
		w.submit("b/borrows", cpu("100000"))
		w.settle()
		for i := range n {
			w.submit(fmt.Sprintf("g%d/u%04d", i%10, i), cpu(fmt.Sprint(1+i/10)))
		}
		w.settle()
		if got := w.core.Stored().Reservations; got != n {
			t.Fatalf("%d units hold reservations, want %d", got, n)
		}
		before := w.core.Reviews()
		for i := range 20 {
			w.submit(fmt.Sprintf("b/%d", i), map[string]string{"memory": "1"})
			w.settle()
		}
		if got := len(w.released()); got != 21 {
			t.Fatalf("%d units are released, want 21", got)
		}
		if got := w.core.Reviews() - before; got != 0 {
			t.Errorf("with %d reservations, 20 admissions had %d of them checked again, want 0", n, got)
		}
	}
}

func TestAUnitThatRequestsNothingGetsItsTurnOfTheJobs(t *testing.T) {
	jobs := map[string]string{"cpu": "100", quota.JobsResource: "1"}
	w := newWorld(t, roundRobin(), owning("root", nil, jobs, owning("a", nil, nil), owning("b", cpu("50"), nil)))
	w.submit("b/first", cpu("1"))
	w.settle()
	w.submit("a/nothing", nil)
	for round := range 3 {
		w.submit(fmt.Sprintf("b/%d", round), cpu("1"))
		w.after(time.Second)
		finishAll(w)
		w.settle()
		if slices.Contains(w.released(), "a/nothing") {
			return
		}
	}
	t.Fatal("a unit that requests nothing, and is the oldest, lost all rounds for a job")
}

func TestWhereOnlyJobsAreLackingTheBranchWithFewerJobsGoesFirst(t *testing.T) {
	limits := map[string]string{"cpu": "1000", quota.JobsResource: "6"}
	w := newWorld(t, roundRobin(), owning("root", nil, limits,
		owning("dept", nil, nil, owning("a", nil, nil), owning("b", cpu("50"), nil)), owning("c", cpu("50"), nil)))
	for i := range 6 { // they are larger, but that is not what is lacking
		w.submit(fmt.Sprintf("b/%d", i), cpu("9"))
	}
	w.settle()
	for i := range 6 {
		w.submit(fmt.Sprintf("c/%d", i), cpu("1"))
		w.submit(fmt.Sprintf("a/%d", i), nil)
		w.submit(fmt.Sprintf("b/more-%d", i), cpu("1"))
	}
	w.settle()
	for _, want := range [][3]int{{0, 5, 1}, {0, 4, 2}, {0, 3, 3}, {1, 2, 3}} {
		for _, key := range w.released() {
			if strings.HasPrefix(key, "b/") && !strings.HasPrefix(key, "b/more") {
				w.finish(key)
				break
			}
		}
		w.settle()
		if got := [3]int{count(w, "a"), count(w, "b"), count(w, "c")}; got != want {
			t.Fatalf("jobs of a, b and c are %v, want %v", got, want)
		}
	}
}

func TestOnlyAPriorityThatWasRefusedBacksOff(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", nil, cpu("4"), owning("a", nil, nil)))
	w.submit("a/runs", cpu("4"))
	w.settle()
	w.submit("a/refused", cpu("3"), priority(5))
	w.after(500 * time.Millisecond)
	// The new one is not in backoff, although it requests the same and has never been tried.
	w.submit("a/urgent", cpu("3"), priority(1000))
	w.submit("a/low", cpu("2"), priority(-5))
	w.finish("a/runs")
	w.settle()
	expectReleased(t, w, "a/urgent")
}

func TestTheGuaranteeOfAnInnerNodeIsAtLeastThatOfItsChildren(t *testing.T) {
	t.Run("siblings do not starve", func(t *testing.T) {
		// inner guarantees 6 to its child, and promises only 2 itself.
		w := pausing(t, owning("root", nil, cpu("10"),
			owning("inner", cpu("2"), nil, owning("a", cpu("6"), nil)), owning("b", nil, nil)))
		w.submit("b/borrows", cpu("10"))
		w.settle()
		w.submit("a/1", cpu("3"))
		w.submit("a/2", cpu("3"))
		w.settle()
		w.finish("b/borrows")
		w.submit("b/more", cpu("5"))
		w.settle()
		expectReleased(t, w, "a/1", "a/2")
	})
	t.Run("an inner node without min is served by the share of what its children are guaranteed", func(t *testing.T) {
		w := newWorld(t, roundRobin(), owning("root", nil, cpu("20"),
			owning("inner", nil, nil, owning("a", cpu("10"), nil)), owning("b", cpu("4"), nil)))
		w.submit("b/runs", cpu("16"))
		w.submit("a/runs", cpu("4"))
		w.settle()
		w.submit("b/next", cpu("12"))
		w.submit("a/next", cpu("12")) // above its min, too, but less far
		w.settle()
		w.finish("b/runs")
		w.settle()
		expectReleased(t, w, "a/next", "a/runs")
	})
	t.Run("a department is owed its guarantee for any of its teams", func(t *testing.T) {
		w := pausing(t, owning("root", nil, cpu("10"),
			owning("inner", cpu("6"), nil, owning("a", nil, nil)), owning("b", nil, nil)))
		w.submit("b/1", cpu("5"))
		w.submit("b/2", cpu("5"))
		w.settle()
		w.submit("a/owed", cpu("6"))
		w.settle()
		w.finish("b/1")
		w.submit("b/3", cpu("5"))
		w.settle()
		expectReleased(t, w, "b/2")
	})
	t.Run("a warning where more is guaranteed than there is", func(t *testing.T) {
		root := owning("root", nil, cpu("10"), owning("inner", nil, nil, owning("a", cpu("8"), nil), owning("b", cpu("8"), nil)))
		_, warnings, err := tree.New(resources.NewNames(), root, tree.Options{})
		want := "root: 16 cpu is guaranteed below this node, which is above max 10, so not all of it can be guaranteed at the same time; lower the min of nodes below it or raise the max"
		if err != nil || !slices.Contains(warnings, want) {
			t.Errorf("error %v, warnings %q, want %q", err, warnings, want)
		}
	})
}

func TestFiguresInAMessageAreThoseOfTheTimeAtWhichItIsWritten(t *testing.T) {
	opts := roundRobin()
	opts.Explanations = 1
	w := newWorld(t, opts, owning("root", nil, cpu("10"), owning("a", nil, nil), owning("b", nil, nil)))
	w.submit("b/1", cpu("4"))
	w.settle()
	w.submit("a/waits", cpu("9"))
	for len(w.news) > 0 {
		w.deliver()
	}
	w.think() // a/waits is refused while 4 are used
	w.submit("b/2", cpu("5"))
	for len(w.news) > 0 {
		w.deliver()
	}
	w.think()
	w.after(2 * time.Second)
	found := w.writes("a/waits", scheduler.Explain)
	if want := "insufficient cpu in quota root: requested 9, used 9 of max 10"; len(found) != 1 || found[0].Message != want {
		t.Errorf("explained by %+v, want %s", found, want)
	}
}

func TestNotAtFrontNamesNoUnitThatMayBeGone(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.Block}, owning("root", nil, cpu("4"), owning("a", nil, nil)))
	w.submit("a/runs", cpu("4"))
	w.settle()
	w.submit("a/front", cpu("3"), priority(2))
	w.submit("a/second", cpu("3"), priority(1))
	w.submit("a/third", cpu("3"))
	w.after(2 * time.Second)
	w.delete("a/front")
	w.after(time.Hour)
	found := w.writes("a/third", scheduler.Explain)
	if last := found[len(found)-1]; last.Reason != wellknown.ReasonNotAtFront || strings.Contains(last.Message, "a/front") {
		t.Errorf("an hour after a/front was deleted, a/third shows %q", last.Message)
	}
}

func TestWhatIsUsedInAMessageAfterAChangeOfTheTreeIsAllThatIsCharged(t *testing.T) {
	root := owning("root", nil, cpu("20"), owning("a", nil, nil))
	w := newWorld(t, roundRobin(), root)
	w.submit("a/zzz", cpu("10"))
	w.settle()
	w.submit("a/huge", cpu("15"))
	w.after(2 * time.Second)
	w.plant(owning("root", nil, cpu("12"), owning("a", nil, nil))) // a/huge comes before a/zzz by name
	w.after(2 * time.Second)
	found := w.writes("a/huge", scheduler.Explain)
	want := "can never fit in quota root: requested 15 cpu, max is 12 (used 10); request less, or ask an administrator to raise the max of the quota"
	if last := found[len(found)-1]; last.Message != want {
		t.Errorf("explained by %q, want %q", last.Message, want)
	}
}

func TestMaxJobsSaysWhatWasRequested(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", nil, map[string]string{quota.JobsResource: "2"}, owning("a", nil, nil)))
	for i := range 3 {
		w.submit(fmt.Sprint("a/", i), cpu("1"))
	}
	w.after(2 * time.Second)
	want := "job limit reached in quota root: requested 1 job, used 2 of max 2 (kube-queue/max-jobs)"
	if found := w.writes("a/2", scheduler.Explain); len(found) != 1 || found[0].Message != want {
		t.Errorf("explained by %+v, want %q", found, want)
	}
}
