package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// pacedWorld returns a world that lets owners stop their jobs twice before they must wait.
func pacedWorld(t *testing.T) *world {
	opts := roundRobin()
	opts.Requeues = backoff.Policy{Free: 2, Initial: 10 * time.Second, Max: time.Minute, Quiet: 10 * time.Minute}
	return newWorld(t, opts, leaf("root", cpu("4"), "a"))
}

// stopByHand suspends the released job as its owner does. Its pods are then gone.
func stopByHand(w *world, key string) {
	w.change(key, func(u *scheduler.Unit) {
		u.Stopped, u.Held = true, &quota.Refusal{Reason: wellknown.ReasonSuspendedByUser, Sentence: "by hand"}
	})
}

// resume unsuspends the job as its owner does.
func resume(w *world, key string) {
	w.change(key, func(u *scheduler.Unit) { u.Held = nil })
}

func TestAJobThatIsSuspendedAndResumedAgainAndAgainWaitsLongerEachTime(t *testing.T) {
	w := pacedWorld(t)
	w.enqueue("a/one", cpu("3"))
	var waits []time.Duration
	for range 7 {
		expectReleased(t, w, "a/one")
		stopByHand(w, "a/one")
		stopped := w.now
		resume(w, "a/one")
		for w.units["a/one"].Phase == scheduler.Waiting && w.now.Sub(stopped) < time.Hour {
			w.after(time.Second)
		}
		waits = append(waits, w.now.Sub(stopped))
	}
	want := []time.Duration{0, 0, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}
	if !slices.Equal(waits, want) {
		t.Errorf("it waited %v, want %v", waits, want)
	}
}

func TestAUnitThatWaitsBecauseItWasStoppedTooOftenSaysSo(t *testing.T) {
	w := pacedWorld(t)
	w.enqueue("a/one", cpu("3"))
	for range 2 {
		stopByHand(w, "a/one")
		resume(w, "a/one")
	}
	stopByHand(w, "a/one")
	requeued := last(w.writes("a/one", scheduler.Requeue))
	if requeued.Reason != wellknown.ReasonSuspendedByUser || requeued.Requeue.Count != 3 ||
		!strings.Contains(requeued.Message, "stopped 3 times in a short time") {
		t.Errorf("it is requeued with %+v", requeued)
	}
	resume(w, "a/one")
	w.restart() // the backoff is in the objects
	w.after(5 * time.Second)
	if explained := last(w.writes("a/one", scheduler.Explain)); explained.Reason != wellknown.ReasonBackoff || !strings.Contains(explained.Message, "gave its quota back 3 times") {
		t.Errorf("it reports %+v", explained)
	}
	if w.units["a/one"].Phase != scheduler.Waiting {
		t.Error("it was admitted too early")
	}
}

func TestADeactivatedUnitThatWaitsCannotEscapeItsBackoff(t *testing.T) {
	w := pacedWorld(t)
	w.enqueue("a/one", cpu("3"))
	for range 3 {
		stopByHand(w, "a/one")
		resume(w, "a/one")
	}
	for range 5 {
		w.write("a/one", deactivate)
		w.after(time.Second)
		w.change("a/one", activate)
	}
	if w.units["a/one"].Phase != scheduler.Waiting {
		t.Error("it was admitted too early")
	}
	w.after(10 * time.Second)
	if w.units["a/one"].Phase != scheduler.Dequeued {
		t.Error("it was not admitted after its backoff")
	}
}

func TestADrainedQueueMakesNobodyWait(t *testing.T) {
	w := pacedWorld(t)
	w.enqueue("a/one", cpu("3"))
	for range 5 {
		w.configure(scheduler.QueueChanged{Queue: "root", Stop: scheduler.Drain})
		w.settle()
		w.change("a/one", func(u *scheduler.Unit) { u.Stopped = true })
		w.configure(scheduler.QueueChanged{Queue: "root"})
		w.settle()
		if w.units["a/one"].Phase != scheduler.Dequeued {
			t.Fatal("it waits because an administrator stopped the queue")
		}
	}
}
