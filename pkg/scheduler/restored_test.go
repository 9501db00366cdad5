package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func TestAUnitThatReplacesALostOneIsChargedAtOnceThoughItDoesNotFit(t *testing.T) {
	w := full(t)
	w.exact = false
	w.submit("a/lost", cpu("3"), restored(1))
	w.deliver()
	if used := w.tree.Usage()[0]; used.Jobs != 2 {
		t.Fatalf("%d units are charged before anything is written, want 2", used.Jobs)
	}
	w.settle()
	expectReleased(t, w, "a/lost", "a/runs")
	if got := w.units["a/lost"].Attempts; got != 2 {
		t.Fatalf("it has attempt %d, not that of its job", got)
	}
	w.finish("a/runs")
	w.after(time.Minute)
	expectReleased(t, w, "a/lost") // the room is not enough for a/waits
	w.finish("a/lost")
	w.after(time.Minute)
	expectReleased(t, w, "a/waits")
	expectNotAdmitted(t, w, "a/lost", 0)
}

// None of this holds back a job that already runs.
func TestAUnitThatReplacesALostOneIsChargedWhateverItsQueueIs(t *testing.T) {
	for name, set := range map[string]scheduler.QueueChanged{
		"stopped":     {Queue: "root", Stop: scheduler.Hold},
		"with checks": {Queue: "root", Checks: scheduler.ChecksOf([]string{"c"})},
		"blocked":     {Queue: "root", Policy: queue.Block},
	} {
		w := full(t)
		w.exact = false
		w.addCheck("c", 0)
		w.configure(set)
		w.enqueue("a/lost", cpu("3"), restored(0), w.elastic(1, 3))
		if u := w.units["a/lost"]; u.Phase != scheduler.Dequeued || u.Evicted || w.tree.Usage()[0].Jobs != 2 {
			t.Errorf("%s: phase %d, evicted %t, usage %+v", name, u.Phase, u.Evicted, w.tree.Usage()[0])
		}
		if grant := w.writes("a/lost", scheduler.Dequeue)[0].Grant; grant.Count != 0 {
			t.Errorf("%s: it was admitted with %d pods only", name, grant.Count)
		}
	}
}
