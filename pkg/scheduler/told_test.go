package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func last(writes []scheduler.Write) scheduler.Write {
	if len(writes) == 0 {
		return scheduler.Write{}
	}
	return writes[len(writes)-1]
}

func TestWhatBecomesImpossibleSaysSo(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"the unit asks for more": func(w *world) {
			d := w.demand(cpu("9"))
			w.write("a/2", func(u *scheduler.Unit) { u.Demand = d })
		},
		"the quota shrinks": func(w *world) { w.exact = false; w.plant(leaf("root", cpu("2"), "a")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
			w.submit("a/1", cpu("4"))
			w.settle()
			w.submit("a/2", cpu("3"))
			w.after(time.Minute)
			change(w)
			w.after(5 * time.Minute)
			if told := last(w.writes("a/2", scheduler.Explain)); told.Reason != quota.ReasonExceedsMaxQuota {
				t.Fatalf("a/2 is told %+v", told)
			}
		})
	}
}

func TestInABlockingQueueWhatCanNeverFitSaysThat(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.Block}, leaf("root", cpu("4"), "a"))
	w.submit("a/1", cpu("4"))
	w.submit("a/2", cpu("4"))
	w.submit("a/never", cpu("5"))
	w.after(5 * time.Second)
	if told := last(w.writes("a/never", scheduler.Explain)); told.Reason != quota.ReasonExceedsMaxQuota {
		t.Fatalf("told %+v", told)
	}
}

func TestTheHeadOfAStoppedQueueSaysSo(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.configure(scheduler.QueueChanged{Queue: "root", Stop: scheduler.Hold})
	w.submit("a/1", cpu("4"))
	w.settle()
	if stats := w.core.ChangedQueues(w.now); len(stats) != 1 || stats[0].HeadReason != scheduler.ReasonQueueStopped {
		t.Fatalf("%+v", stats)
	}
}

func TestABackoffThatIsOverIsActedUponAtOnce(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/1", cpu("4"), func(u *scheduler.Unit) { u.RequeueAt = w.now.Add(10 * time.Second) })
	w.deliver()
	w.think()
	w.now = w.now.Add(10 * time.Second)
	w.think()
	if got := releases(w.sent); len(got) != 1 {
		t.Fatalf("under way are %+v, want the release", w.sent)
	}
}

func TestWhoComesOutOfBackoffSaysWhatItWaitsForThen(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/1", cpu("4"))
	w.settle()
	w.submit("a/2", cpu("3"), func(u *scheduler.Unit) { u.RequeueAt = w.now.Add(40 * time.Second) })
	w.after(10 * time.Minute)
	if told := last(w.writes("a/2", scheduler.Explain)); told.Reason != quota.ReasonQuotaExceeded {
		t.Fatalf("a/2 is told %+v", told)
	}
}

// A unit that was held shows something else than the units beside it, which are told of
// a cause that comes and goes in their own time.
func TestWhoComesBackInLineWhileACauseComesAndGoesIsToldOfOne(t *testing.T) {
	both := map[string]string{"cpu": "4", "gpu": "4"}
	w := newWorld(t, roundRobin(), leaf("root", both, "a"))
	w.submit("a/cpu-1", cpu("4"))
	w.submit("a/gpu", map[string]string{"gpu": "4"})
	w.settle()
	w.submit("a/2", both)
	w.submit("a/3", both, deactivate)
	w.after(time.Minute)
	w.finish("a/cpu-1")
	w.settle()
	w.write("a/3", activate)
	w.after(2 * time.Second)
	w.submit("a/cpu-2", cpu("4"))
	w.settle()
	w.finish("a/gpu")
	w.after(10 * time.Minute)
	if told := last(w.writes("a/3", scheduler.Explain)); !strings.HasPrefix(told.Message, "waiting for cpu") {
		t.Fatalf("a/3 is told %+v", told)
	}
}
