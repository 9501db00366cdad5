package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// pair returns a world with two units and room for one: a/one is released.
func pair(t *testing.T, change ...func(*scheduler.Unit)) *world {
	t.Helper()
	w := newWorld(t, scheduler.Options{Policy: queue.Priority}, leaf("root", cpu("4"), "a"))
	w.enqueue("a/one", cpu("3"), change...)
	w.now = w.now.Add(time.Second)
	w.enqueue("a/two", cpu("3"))
	expectReleased(t, w, "a/one")
	return w
}

func TestADeactivatedUnitKeepsItsQuotaUntilItHasStoppedAndThenWaits(t *testing.T) {
	w := pair(t)
	first := w.units["a/one"].Submitted
	w.write("a/one", deactivate)
	w.after(10 * time.Minute)
	w.expectWrites("a/one", scheduler.Evict, "Deactivated")
	if message := w.writes("a/one", scheduler.Evict)[0].Message; message != "the job was deactivated after its release" {
		t.Errorf("the sentence is %q", message)
	}
	expectReleased(t, w, "a/one") // its pods may still exist

	w.change("a/one", stop)
	expectReleased(t, w, "a/two")
	w.expectWrites("a/one", scheduler.Requeue, wellknown.ReasonInactive)
	w.submit("a/three", cpu("3"))
	w.finish("a/two")
	w.after(time.Minute)
	expectReleased(t, w, "a/three") // an inactive unit blocks no other

	w.submit("a/four", cpu("3"))
	w.write("a/one", activate)
	w.after(time.Minute)
	w.end("a/three")
	expectReleased(t, w, "a/one") // its first submission decides its place
	if u := w.units["a/one"]; u.Submitted != first || u.Attempts != 2 {
		t.Fatalf("submitted %d, want %d; attempts %d, want 2", u.Submitted, first, u.Attempts)
	}
	w.after(time.Minute)
	w.expectWrites("a/one", scheduler.Evict, "Deactivated")
}

// A ResourceQuota can count pods that have ended until they are deleted.
func TestAStoppedUnitDoesNotWaitForPodsThatHaveEnded(t *testing.T) {
	w := pair(t)
	pod := w.podOf("a/one", "pod", 1000)
	w.pod(pod)
	w.change("a/one", deactivate)
	w.change("a/one", stop)
	expectReleased(t, w, "a/one")
	pod.Idle = true
	w.pod(pod)
	w.settle()
	expectReleased(t, w, "a/two")
	if used, _ := w.tree.Usage()[0].Used.Get(w.names.ID("cpu")); used != 4000 {
		t.Errorf("%d are used, want 4000, with the pod", used)
	}
}

func TestAUnitIsEvictedWhenItsTimeIsOver(t *testing.T) {
	for _, phase := range []scheduler.Phase{scheduler.Dequeued, scheduler.Running} {
		w := pair(t, maxTime(30*time.Second))
		released := w.units["a/one"].DequeuedAt
		w.write("a/one", func(u *scheduler.Unit) { u.Phase = phase })
		w.after(29*time.Second - time.Millisecond)
		w.expectWrites("a/one", scheduler.Evict)
		if !w.wake.Equal(released.Add(30 * time.Second)) {
			t.Fatalf("the core wants to look in %v, not when the time is over", w.wake.Sub(released))
		}
		w.after(time.Millisecond)
		w.expectWrites("a/one", scheduler.Evict, "MaximumExecutionTime")
		require.Says(t, "a/one", w.writes("a/one", scheduler.Evict)[0].Message, "maximum execution time of 30 s")
		w.after(time.Hour)
		w.expectWrites("a/one", scheduler.Evict, "MaximumExecutionTime")
		expectReleased(t, w, "a/one")
		w.write("a/one", deactivate) // job-extensions does so before it reports that the job has stopped
		w.write("a/one", stop)
		w.settle()
		expectReleased(t, w, "a/two")
	}
}

func TestAChangedTimeLimitCountsAtOnce(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, then time.Duration
		evicted      time.Duration
	}{
		{"made longer", 30 * time.Second, time.Minute, time.Minute},
		{"taken away", 30 * time.Second, 0, 0},
		{"made shorter", time.Hour, 30 * time.Second, 30 * time.Second},
		{"made shorter than it has run already", time.Hour, time.Second, 10 * time.Second},
		{"given to one that had none", 0, 20 * time.Second, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := pair(t, maxTime(c.before))
			w.after(9 * time.Second) // it has run for 10 s
			w.write("a/one", maxTime(c.then))
			if c.evicted == 0 {
				w.after(time.Hour)
				w.expectWrites("a/one", scheduler.Evict)
				return
			}
			w.after(c.evicted - 10*time.Second)
			w.expectWrites("a/one", scheduler.Evict, "MaximumExecutionTime")
			if ran := w.now.Sub(w.units["a/one"].DequeuedAt); ran != c.evicted {
				t.Errorf("it ran for %v", ran)
			}
		})
	}
}

func TestAnEvictionIsNotTakenBack(t *testing.T) {
	w := pair(t)
	w.change("a/one", deactivate)
	w.write("a/one", activate) // its job may have been suspended already
	w.after(time.Minute)
	w.change("a/one", stop)
	expectReleased(t, w, "a/one") // it was requeued immediately, at its old place
	if attempts := w.units["a/one"].Attempts; attempts != 2 {
		t.Fatalf("%d attempts, want 2", attempts)
	}
	w.expectWrites("a/one", scheduler.Requeue, "")
}

func TestAnEvictionOfBeforeIsForgottenWithTheRelease(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"), func(u *scheduler.Unit) { u.Evicted, u.Stopped = true, true }, maxTime(time.Minute))
	w.after(59 * time.Second)
	expectReleased(t, w, "a/one")
	w.after(time.Second)
	w.expectWrites("a/one", scheduler.Evict, "MaximumExecutionTime")
}
