package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// awaiting returns a world in which the queue of namespace a, with 4 cpu, waits a minute for pods to become ready.
func awaiting(t *testing.T, blocks bool) *world {
	t.Helper()
	w := newWorld(t, checkOptions(), leaf("root", cpu("4"), "a"))
	w.configure(scheduler.QueueChanged{Queue: "root", PodsReady: scheduler.PodsReady{Timeout: time.Minute, Blocks: blocks}})
	return w
}

func ready(u *scheduler.Unit) { u.AwaitsPods = false }

// The backoff is forgotten after half an hour without a try, but not because a try takes longer.
func TestAJobWhosePodsAreNotReadyInTimeIsStoppedAndWaitsLongerEachTime(t *testing.T) {
	for _, timeout := range []time.Duration{time.Minute, 40 * time.Minute} {
		t.Run(timeout.String(), func(t *testing.T) { expectLongerWaits(t, timeout) })
	}
}

func expectLongerWaits(t *testing.T, timeout time.Duration) {
	t.Helper()
	w := awaiting(t, false)
	w.configure(scheduler.QueueChanged{Queue: "root", PodsReady: scheduler.PodsReady{Timeout: timeout}})
	w.enqueue("a/job", cpu("4"))
	w.submit("a/other", cpu("4"))
	var waits []time.Duration
	for range 3 {
		w.expectPhase("a/job", scheduler.Dequeued, "")
		evictions := len(w.writes("a/job", scheduler.Evict))
		w.after(timeout - time.Millisecond)
		w.expectCount("a/job", scheduler.Evict, evictions)
		w.after(time.Millisecond)
		got := w.writes("a/job", scheduler.Evict)
		if len(got) != evictions+1 || got[evictions].Reason != wellknown.ReasonPodsReadyTimeout ||
			got[evictions].Message != fmt.Sprintf("not all pods of the job were ready %v after its release (podsReadyTimeout of queue root); the job is stopped and queued again", timeout) {
			t.Fatalf("it is evicted with %+v", got)
		}
		w.restart() // the next process knows the cause too
		w.change("a/job", stop)
		w.expectPhase("a/job", scheduler.Waiting, wellknown.ReasonBackoff)
		if got := w.lastMessage("a/job"); !strings.HasPrefix(got, fmt.Sprintf("not all pods of the job were ready in time (requeue %d); the job is queued again at ", len(waits)+1)) {
			t.Fatalf("it shows %q", got)
		}
		w.restart() // and so does the one after it, from the object
		if got := w.viewedMessage("a/job"); got != w.lastMessage("a/job") {
			t.Fatalf("a view has %q", got)
		}
		waits = append(waits, w.units["a/job"].RequeueAt.Sub(w.now))
		expectReleased(t, w, "a/other")
		w.write("a/other", ready)
		w.finish("a/other")
		w.after(waits[len(waits)-1])
		w.delete("a/other")
		w.submit("a/other", cpu("4"))
		w.settle()
	}
	if want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second}; !slices.Equal(waits, want) {
		t.Fatalf("it waited %v, want %v", waits, want)
	}
	w.write("a/job", ready)
	w.after(time.Hour)
	expectReleased(t, w, "a/job")
}

func TestAJobThatTakesLongToStopForAnotherDoesNotWaitBecauseOfItsPods(t *testing.T) {
	w := awaiting(t, false)
	set := w.set["root"]
	set.Preemption.WithinQueue = true
	w.configure(set)
	w.submit("a/job", cpu("4"))
	w.after(40 * time.Second)
	w.enqueue("a/high", cpu("4"), priority(1))
	expectEvicted(t, w, "a/job")
	w.after(time.Minute)
	w.change("a/job", stop)
	expectReleased(t, w, "a/high")
	if u := w.units["a/job"]; u.Reason == wellknown.ReasonBackoff || u.RequeueAt.After(w.now) {
		t.Errorf("it waits until %v: %s", u.RequeueAt, w.lastMessage("a/job"))
	}
}

func TestAQueueAdmitsNoUnitUntilThePodsOfTheLastAreReady(t *testing.T) {
	w := awaiting(t, true)
	for _, name := range []string{"a/1", "a/2", "a/3"} {
		w.submit(name, cpu("1"))
		w.after(time.Second)
	}
	w.after(10 * time.Second)
	expectReleased(t, w, "a/1")
	w.expectPhase("a/2", scheduler.Waiting, wellknown.ReasonWaitingForPods)
	w.expectPhase("a/3", scheduler.Waiting, wellknown.ReasonWaitingForPods)
	if got := w.lastMessage("a/2"); !strings.HasPrefix(got, "pods of another job of queue root are not ready yet") {
		t.Fatalf("it shows %q", got)
	}
	w.restart()
	w.after(time.Second)
	expectReleased(t, w, "a/1")
	w.change("a/1", ready)
	expectReleased(t, w, "a/1", "a/2")
	w.after(time.Minute) // the pods of the second never become ready
	expectReleased(t, w, "a/1", "a/2")
	w.change("a/2", stop)
	expectReleased(t, w, "a/1", "a/3")
	w.delete("a/3") // a unit that is gone does not block the queue
	w.after(time.Minute)
	expectReleased(t, w, "a/1", "a/2")
	w.submit("a/3", cpu("1"))
	set := w.set["root"]
	set.PodsReady.Blocks = false
	w.configure(set)
	w.after(10 * time.Second)
	expectReleased(t, w, "a/1", "a/2", "a/3")
}
