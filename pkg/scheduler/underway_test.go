package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// explaining brings the world to a point where an explanation of a/2 is in progress and room for it was found, so its
// release is requested but not sent.
func explaining(t *testing.T, w *world) {
	w.enqueue("a/1", cpu("4"))
	w.submit("a/2", cpu("4"))
	w.hearAndThink()
	w.now = w.now.Add(2 * scheduler.ReasonDelay)
	w.think()
	w.expectSent(scheduler.Explain)
	w.finish("a/1")
	w.hearAndThink()
}

// A release that was decided but not sent, because another write is in progress, is decided again when its reason is
// gone.
func TestAReleaseThatWaitsForAnotherWriteIsDecidedAgain(t *testing.T) {
	stopped := func(stop scheduler.Stop) func(*world) {
		return func(w *world) { w.configure(scheduler.QueueChanged{Queue: "root", Stop: stop}) }
	}
	for name, change := range map[string]func(*world){
		"its queue is stopped": stopped(scheduler.Hold),
		"its queue is drained": stopped(scheduler.Drain),
		"its quota shrinks":    func(w *world) { w.plant(leaf("root", cpu("2"), "a")) },
		"its quota goes":       func(w *world) { w.plant(leaf("root", cpu("4"), "b")) },
		"there is no quota": func(w *world) {
			w.core.Apply(w.now, scheduler.QuotaChanged{Missing: &quota.Refusal{Reason: wellknown.ReasonInvalidQuotaTree, Sentence: "no tree"}})
		},
		"it is sent to backoff": func(w *world) {
			w.write("a/2", func(u *scheduler.Unit) { u.RequeueAt = w.now.Add(time.Minute) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
			explaining(t, w)
			change(w)
			w.land(0)
			w.settle()
			expectReleased(t, w)
		})
	}
}

func TestAReleaseThatWasUndoneByHandBeforeItWasHeardOfIsNotKeptCharged(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/1", cpu("4"))
	w.hearAndThink()
	w.land(0)
	w.write("a/1", func(u *scheduler.Unit) { u.Phase = scheduler.Waiting })
	w.news = w.news[1:] // the informer reports only the last
	w.unproven = true
	w.deliver()
	w.unproven = false
	w.answer(0)
	w.settle()
	expectReleased(t, w, "a/1")
}

func TestTheProofOfSumsDoesNotOverflow(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", nil, "a"))
	w.unproven = true
	for i := range 1500 {
		w.submit(fmt.Sprintf("a/%04d", i), map[string]string{"memory": "8Pi"})
	}
	w.settle()
	require.NoError(t, w.core.Check())
}
