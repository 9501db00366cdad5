package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// placed changes the pods of a/job. Each argument is why the scheduler finds no node for a pod; empty if it has one.
func placed(w *world, messages ...string) {
	for i, message := range messages {
		p := w.podOf("a/job", fmt.Sprint("pod-", i), 1000)
		p.Unschedulable = message
		w.pod(p)
	}
}

func releasedJob(t *testing.T) *world {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.enqueue("a/job", cpu("4"))
	expectReleased(t, w, "a/job")
	return w
}

func TestAReleasedUnitWhosePodsCannotBeScheduledSaysSoAfter5Seconds(t *testing.T) {
	w := releasedJob(t)
	expect := func(marks, clears int, says string) {
		t.Helper()
		found := w.expectCount("a/job", scheduler.MarkUnscheduled, marks)
		w.expectCount("a/job", scheduler.ClearUnscheduled, clears)
		if marks > 0 && found[marks-1].Message != says {
			t.Fatalf("it says %q, want %q", found[marks-1].Message, says)
		}
	}
	placed(w, "", "no cpu", "no cpu", "no gpu")
	w.after(scheduler.UnscheduledAfter - time.Millisecond)
	expect(0, 0, "")
	w.after(time.Millisecond)
	expect(1, 0, "3 of 4 pods cannot be scheduled: no cpu")

	// What changes all the time is written every 30 s.
	for i := range 29 {
		placed(w, "", "", fmt.Sprint("message ", i), "")
		w.after(time.Second)
	}
	expect(1, 0, "3 of 4 pods cannot be scheduled: no cpu")
	w.after(time.Second)
	expect(2, 0, "1 of 4 pods cannot be scheduled: message 28")
	placed(w, "", "", "", "")
	w.after(time.Millisecond)
	expect(2, 1, "1 of 4 pods cannot be scheduled: message 28")
	w.after(time.Hour)
	expect(2, 1, "1 of 4 pods cannot be scheduled: message 28")
	if w.units["a/job"].Unscheduled {
		t.Error("it still shows it")
	}
}

func TestAnEndedUnitKeepsTheMarkWhoseRemovalTheAPIServerDenied(t *testing.T) {
	w := releasedJob(t)
	placed(w, "no cpu")
	w.after(scheduler.UnscheduledAfter)
	placed(w, "")
	w.think()
	w.expectSent(scheduler.ClearUnscheduled)
	w.deny(0)
	placed(w, "", "") // the write is wanted again, and held back
	w.think()
	w.finish("a/job")
	w.after(time.Hour) // the test fails if a removal lands
	w.expectCount("a/job", scheduler.ClearUnscheduled, 0)
}

func TestPodsThatAreScheduledSoonCostNoWrite(t *testing.T) {
	w := releasedJob(t)
	for range 20 {
		placed(w, "no cpu")
		w.after(scheduler.UnscheduledAfter - time.Second)
		placed(w, "")
		w.after(time.Second)
	}
	w.expectCount("a/job", scheduler.MarkUnscheduled, 0)
}

func TestTheNextProcessKnowsThatAUnitShowsUnscheduledPods(t *testing.T) {
	w := releasedJob(t)
	placed(w, "no cpu")
	w.after(time.Minute)
	w.restart()
	w.after(time.Minute)
	if found := w.writes("a/job", scheduler.MarkUnscheduled); len(found) != 1 || found[0].Message != "the pod cannot be scheduled: no cpu" {
		t.Errorf("it was marked by %+v, want one write", found)
	}
	placed(w, "no gpu")
	w.after(scheduler.UnscheduledInterval)
	if found := w.writes("a/job", scheduler.MarkUnscheduled); len(found) != 2 || !strings.HasSuffix(found[1].Message, "no gpu") {
		t.Errorf("it was marked by %+v, want another write", found)
	}
	w.restart()
	w.podGone("pod-0")
	w.after(time.Second)
	w.expectCount("a/job", scheduler.ClearUnscheduled, 1)
}

// Its pods may be refused, so that no pod shows why.
func TestAReleasedUnitWithoutPodsSaysSo(t *testing.T) {
	w := releasedJob(t)
	w.after(scheduler.PodlessSoon - time.Millisecond)
	w.expectCount("a/job", scheduler.MarkUnscheduled, 0)
	w.after(time.Minute)
	w.restart()
	w.after(time.Minute)
	if found := w.writes("a/job", scheduler.MarkUnscheduled); len(found) != 1 || !strings.HasPrefix(found[0].Message, "no pod of the job exists 5s") {
		t.Errorf("it was marked by %+v", found)
	}
	placed(w, "")
	w.after(time.Second)
	w.podGone("pod-0") // it will be recreated
	w.after(time.Minute)
	w.expectCount("a/job", scheduler.ClearUnscheduled, 1)
}

// fiftyReleased returns a world in which 50 jobs were released at once, a function that gives jobs pods, and one that
// expects how many units show that they have no pods.
func fiftyReleased(t *testing.T) (w *world, run func(from, to int), expectMarks func(want int)) {
	w = newWorld(t, roundRobin(), leaf("root", cpu("100"), "a"))
	for i := range 50 {
		w.submit(fmt.Sprintf("a/job-%02d", i), cpu("1"))
	}
	w.settle()
	return w, func(from, to int) {
			for i := from; i < to; i++ {
				w.pod(w.podOf(fmt.Sprintf("a/job-%02d", i), fmt.Sprint("pod-", i), 1000))
			}
		}, func(want int) {
			t.Helper()
			marks := 0
			for key := range w.units {
				marks += len(w.writes(key, scheduler.MarkUnscheduled))
			}
			if marks != want {
				t.Fatalf("%d jobs say that they have no pods, want %d", marks, want)
			}
		}
}

func TestABusyOperatorDoesNotCostAWriteForEachJob(t *testing.T) {
	w, run, expectMarks := fiftyReleased(t)
	w.after(scheduler.PodlessAfter - time.Second)
	expectMarks(10)
	for i := range 39 {
		run(i, i+1)
		w.after(10 * time.Second)
		expectMarks(10)
	}
	run(39, 45)
	w.after(scheduler.PodlessAfter)
	expectMarks(15) // and the 5 that have none
	w.submit("a/late", cpu("1"))
	w.after(scheduler.PodlessSoon)
	expectMarks(16) // and the new one
}

func TestAllUnitsOfAnOperatorThatIsDownSaySo(t *testing.T) {
	w, _, expectMarks := fiftyReleased(t)
	w.after(scheduler.PodlessAfter)
	expectMarks(50)
}

func TestUnitsThatLaterOnesHaveOvertakenSayThatTheyHaveNoPods(t *testing.T) {
	w, run, expectMarks := fiftyReleased(t)
	progress := 0
	for range scheduler.Overtaken / (20 * time.Second) { // the operator makes progress
		run(progress, progress+1)
		progress++
		w.after(20 * time.Second)
	}
	w.enqueue("a/later", cpu("1"))
	w.pod(w.podOf("a/later", "later", 1000))
	run(progress, progress+1)
	expectMarks(10)
	w.after(20 * time.Second)
	run(progress+1, progress+2)
	w.after(scheduler.PodlessAfter - 20*time.Second)
	expectMarks(50 - 1) // the first got pods at once
}

func TestAUnitThatIsEvictedSaysNothingAboutItsPods(t *testing.T) {
	w := releasedJob(t)
	placed(w, "no cpu")
	w.after(time.Second)
	w.write("a/job", deactivate)
	w.after(time.Minute)
	w.expectCount("a/job", scheduler.MarkUnscheduled, 0)
}

func TestAMessageAboutPodsThatWasNotWrittenIsWrittenLater(t *testing.T) {
	for name, fail := range map[string]func(*world){
		"the unit has changed": func(w *world) {
			w.write("a/job", priority(1))
			w.land(0)
		},
		"the API server denies it": func(w *world) { w.deny(0) },
	} {
		t.Run(name, func(t *testing.T) {
			w := releasedJob(t)
			placed(w, "no cpu")
			w.after(scheduler.UnscheduledAfter)
			placed(w, "no gpu")
			w.after(scheduler.UnscheduledInterval - time.Millisecond)
			w.now = w.now.Add(time.Millisecond)
			w.think()
			w.expectSent(scheduler.MarkUnscheduled)
			fail(w)
			w.after(time.Minute)
			if found := w.writes("a/job", scheduler.MarkUnscheduled); len(found) != 2 || !strings.HasSuffix(found[1].Message, "no gpu") {
				t.Errorf("it was marked by %+v, want the other message too", found)
			}
		})
	}
}
