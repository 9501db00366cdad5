package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// explaining brings the world where an explanation of a/2 is under way while room for it was
// found, so that its release is wanted and not sent.
func explaining(t *testing.T, w *world) {
	w.submit("a/1", cpu("4"))
	w.settle()
	w.submit("a/2", cpu("4"))
	w.deliver()
	w.think()
	w.now = w.now.Add(2 * scheduler.TellAfter)
	w.think()
	if len(w.sent) != 1 || w.sent[0].Kind != scheduler.Explain {
		t.Fatalf("under way are %+v, want the explanation", w.sent)
	}
	w.finish("a/1")
	w.deliver()
	w.think()
}

// A release that was decided and not yet sent, because another write is under way, is
// decided again when its grounds are gone.
func TestAReleaseThatWaitsForAnotherWriteIsDecidedAgain(t *testing.T) {
	for name, change := range map[string]func(*world){
		"its quota shrinks": func(w *world) { w.plant(leaf("root", cpu("2"), "a")) },
		"its quota goes":    func(w *world) { w.plant(leaf("root", cpu("4"), "b")) },
		"there is no quota": func(w *world) {
			w.core.Apply(w.now, scheduler.QuotaChanged{Missing: &quota.Refusal{Reason: quota.ReasonInvalidQuotaTree, Sentence: "no tree"}})
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
	w.deliver()
	w.think()
	w.land(0)
	w.write("a/1", func(u *scheduler.Unit) { u.Phase = scheduler.Waiting })
	w.news = w.news[1:] // the informer tells the last only
	w.deliver()
	w.tell(0)
	w.settle()
	expectReleased(t, w, "a/1")
}

func TestAChangeOfQuotaForgetsWhatItWasAboutToTell(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", map[string]string{"cpu": "4", quota.JobsResource: "2"}, "a"))
	w.submit("a/big", cpu("3"))
	w.submit("a/late", cpu("2"))
	w.after(5 * time.Second) // late is told of the lack of cpu
	w.submit("a/small", cpu("1"))
	w.settle()
	w.finish("a/big")
	w.submit("a/urgent", cpu("1"), priority(1))
	w.settle() // now late lacks a job, of which it is to be told in 30 s
	w.plant(leaf("root", cpu("4"), "a"))
	w.delete("a/late")
	w.after(time.Minute)
	expectReleased(t, w, "a/small", "a/urgent")
}
