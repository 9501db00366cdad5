package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// full returns a world in which one unit uses a quota of 4 cpu, and another one waits.
func full(t *testing.T) *world {
	w := newWorld(t, scheduler.Options{Policy: queue.RoundRobin}, leaf("root", cpu("4"), "a"))
	w.list()
	w.enqueue("a/runs", cpu("4"))
	w.enqueue("a/waits", cpu("4"))
	expectReleased(t, w, "a/runs")
	return w
}

func expectNotAdmitted(t *testing.T, w *world, key string, n int) {
	t.Helper()
	w.expectWrites(key, scheduler.Evict, slices.Repeat([]wellknown.Reason{wellknown.ReasonNotAdmitted}, n)...)
}

func TestAUnitThatIsFirstSeenHoldingQuotaWasNotAdmitted(t *testing.T) {
	w := full(t)
	w.write("a/new", func(u *scheduler.Unit) { u.Demand, u.Phase = w.demand(cpu("1")), scheduler.Dequeued })
	w.forged[w.units["a/new"].UID] = true
	w.exact = false
	w.settle()
	expectNotAdmitted(t, w, "a/new", 1)
}

func TestAUnitThatHasEndedIsNotAdmittedByWritingItsPhase(t *testing.T) {
	w := full(t)
	w.end("a/runs")
	w.write("a/runs", func(u *scheduler.Unit) { u.Phase = scheduler.Dequeued })
	w.forged[w.units["a/runs"].UID] = true
	w.exact = false
	w.settle()
	expectNotAdmitted(t, w, "a/runs", 1)
}

// The response to an admission may be lost, or the informer may be faster.
func TestAnOwnAdmissionIsTrustedHoweverItBecomesKnown(t *testing.T) {
	for name, learn := range map[string]func(w *world){
		"the answer comes first":    func(w *world) { w.answer(0); w.deliver() },
		"the informer comes first":  func(w *world) { w.deliver(); w.answer(0) },
		"it runs before the answer": func(w *world) { w.write("a/u", func(u *scheduler.Unit) { u.Phase = scheduler.Running }); w.settle() },
		"the answer is lost, and the next try is refused": func(w *world) {
			now := *w.units["a/u"]
			w.outcomes[0] = scheduler.Refused{Write: w.outcomes[0].(scheduler.Written).Write, Now: &now}
			w.answer(0)
			w.deliver()
		},
	} {
		w := newWorld(t, scheduler.Options{Policy: queue.RoundRobin}, leaf("root", cpu("4"), "a"))
		w.list()
		w.submit("a/u", cpu("4"))
		w.hearAndThink()
		w.land(0)
		learn(w)
		w.after(time.Minute)
		if evicted := w.writes("a/u", scheduler.Evict); len(evicted) != 0 {
			t.Errorf("%s: it was evicted: %+v", name, evicted)
		}
		expectReleased(t, w, "a/u")
	}
}
