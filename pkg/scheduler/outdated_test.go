package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// The reason for a write changes while the write is requested, waits, or is in progress.

// expectSent expects that one write of the kind is in progress.
func (w *world) expectSent(kind scheduler.Kind) {
	w.t.Helper()
	if len(w.sent) != 1 || w.sent[0].Kind != kind {
		w.t.Fatalf("sent %+v, want one %s", w.sent, kind)
	}
}

// notEvicted returns the one of two units that is not evicted.
func (w *world) notEvicted(a, b string) string {
	w.t.Helper()
	if w.units[a].Evicted == w.units[b].Evicted {
		w.t.Fatalf("evicted are %v", w.evicted())
	}
	if w.units[a].Evicted {
		return b
	}
	return a
}

// evicting returns a world in which the eviction of team/dev for team/prod is in progress.
func evicting(t *testing.T) *world {
	t.Helper()
	w := preempting(t, owning("team", gpu("1"), gpu("1")), "team")
	w.enqueue("team/dev", gpu("1"), priority(100))
	w.submit("team/prod", gpu("1"), priority(1000))
	w.hearAndThink()
	w.expectSent(scheduler.Evict)
	return w
}

// pacing returns a world in which one of two victims of a unit is evicted, and the other one waits for its turn.
func pacing(t *testing.T, claimant string) (w *world, other string) {
	t.Helper()
	w = newWorld(t, roundRobin(), owning("team", gpu("2"), gpu("2")))
	w.configure(scheduler.QueueChanged{Queue: "team", Preemption: scheduler.Preemption{WithinQueue: true, MaxPerMinute: 1}})
	w.submitAll(gpu("1"), "team/a", "team/b")
	w.enqueue(claimant, gpu("2"), priority(100))
	return w, w.notEvicted("team/a", "team/b")
}

func TestADeactivatedUnitIsEvictedAlthoughTheUnitThatItWasEvictedForIsGone(t *testing.T) {
	w := evicting(t)
	w.deny(0)
	w.write("team/dev", deactivate)
	w.delete("team/prod")
	w.after(time.Hour)
	w.expectWrites("team/dev", scheduler.Evict, "Deactivated")
}

func TestAPacedVictimIsEvictedAtOnceWhenItIsDeactivated(t *testing.T) {
	w, other := pacing(t, "team/prod")
	w.change(other, deactivate)
	w.expectWrites(other, scheduler.Evict, "Deactivated")
}

func TestAnEvictionThatFailedIsNotSentAgainWhenTheClaimantIsGone(t *testing.T) {
	w := evicting(t)
	w.runs("team/dev") // so that the write fails
	w.delete("team/prod")
	w.settle()
	w.expectWrites("team/dev", scheduler.Evict)
}

func TestAnEvictionThatFailedIsNotSentAgainWhenTheClaimantHasStarted(t *testing.T) {
	w := evicting(t)
	w.runs("team/dev") // so that the write fails
	w.plant(owning("team", gpu("2"), gpu("2")))
	w.think() // prod starts
	w.settle()
	w.expectWrites("team/dev", scheduler.Evict)
	expectReleased(t, w, "team/dev", "team/prod")
}

func TestAUnitOfAKindThatIsOffIsNotRequeuedWhenItsPodsAppear(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("8"), "a"))
	w.enqueue("a/job", cpu("4"), ofKind(1))
	expectReleased(t, w, "a/job")
	w.now = w.now.Add(scheduler.PodlessAfter)
	w.turnOff(1)
	placed(w, "") // its operator was slow
	w.settle()
	expectReleased(t, w, "a/job")
}

func TestAUnitOfAKindThatIsOffIsNotRequeuedAfterADenialWhenItsPodsAppear(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("8"), "a"))
	w.enqueue("a/job", cpu("4"), ofKind(1))
	w.turnOff(1)
	w.now = w.now.Add(scheduler.PodlessAfter)
	w.think()
	w.expectSent(scheduler.Requeue)
	w.deny(0)
	placed(w, "")
	w.after(time.Minute)
	expectReleased(t, w, "a/job")
}

// Spark reports that an application is suspended before its executors are gone.
func TestAStoppedUnitIsNotRequeuedWhileANewPodExists(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("8"), "a"))
	w.enqueue("a/job", cpu("4"))
	placed(w, "")
	w.change("a/job", stop)
	expectReleased(t, w, "a/job")
	w.podGone("pod-0")
	w.pod(w.podOf("a/job", "pod-1", 1000))
	w.settle()
	w.expectCount("a/job", scheduler.Requeue, 0)
	w.podGone("pod-1")
	w.settle()
	w.expectCount("a/job", scheduler.Requeue, 1)
}

func TestAStoppedUnitThatWasRenewedIsRequeuedWhenItsLastPodEnds(t *testing.T) {
	w := byHand(t)
	w.pod(w.podOf("a/hand", "pod", 1000))
	w.settle()
	w.now = w.now.Add(day)
	w.write("a/hand", func(u *scheduler.Unit) { u.Priority = 1 })
	w.deliverAll() // it should end
	w.write("a/hand", func(u *scheduler.Unit) {
		u.Renewal = &scheduler.Renewal{Timeout: day, At: w.now}
		u.Stopped = true
	})
	w.deliverAll()
	w.podGone("pod")
	w.after(time.Hour)
	if len(w.writes("a/hand", scheduler.Requeue)) == 0 {
		t.Fatal("it holds its quota although it has stopped")
	}
}

func TestAUnitShowsItsNewQuotaAfterAnEvictionThatIsNoLongerNeeded(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("8"), "a"))
	w.enqueue("a/job", cpu("4"))
	placed(w, "")
	w.configure(scheduler.QueueChanged{Queue: "root", Stop: scheduler.Drain})
	w.think()
	w.expectSent(scheduler.Evict)
	w.deny(0)
	w.plant(leaf("renamed", cpu("8"), "a"))
	w.after(time.Hour)
	if u := w.units["a/job"]; u.Quota != "renamed" || u.Evicted {
		t.Fatalf("it is %+v", u)
	}
}

func TestAUnitWhosePodsAreNotReadyIsEvictedAlthoughItsEvictionForAnotherWasWithdrawn(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("team", gpu("2"), gpu("2")))
	w.configure(scheduler.QueueChanged{Queue: "team", Preemption: scheduler.Preemption{WithinQueue: true},
		PodsReady: scheduler.PodsReady{Timeout: 10 * time.Second}})
	w.submitAll(gpu("1"), "team/a", "team/b")
	w.submit("team/prod", gpu("1"), priority(1000))
	w.hearAndThink()
	w.expectSent(scheduler.Evict)
	victim := w.sent[0].Key
	w.deny(0)
	other := "team/a"
	if victim == other {
		other = "team/b"
	}
	w.now = w.now.Add(11 * time.Second)
	w.write(victim, func(u *scheduler.Unit) { u.Phase = scheduler.Running }) // it can be written again
	w.finish(other)
	w.after(time.Hour)
	w.expectWrites(victim, scheduler.Evict, "PodsReadyTimeout")
}

func TestAStoppedUnitForGrowthIsRequeuedIfItIsShownBeforeTheUnitOfTheJob(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("8"), "a"))
	w.submit("a/job", cpu("2"))
	w.submit("a/growth", cpu("2"), w.grows("a/job"))
	w.settle()
	expectReleased(t, w, "a/growth", "a/job")
	w.pod(w.podOf("a/job", "pod", 2000))
	w.write("a/growth", stop)
	w.restart()
	w.after(time.Hour)
	if len(w.writes("a/growth", scheduler.Requeue)) == 0 {
		t.Fatal("it holds its quota although it has stopped")
	}
}

func TestAPacedVictimIsNotEvictedWhenAllClaimantsAreGone(t *testing.T) {
	w, other := pacing(t, "team/high")
	w.enqueue("team/higher", gpu("2"), priority(1000))
	w.delete("team/high")
	w.settle()
	w.delete("team/higher")
	w.after(time.Hour)
	w.expectWrites(other, scheduler.Evict)
}

func TestAPacedVictimIsNotEvictedWhenItMayNoLongerBe(t *testing.T) {
	set := func(p scheduler.Preemption) func(*world, string) {
		p.MaxPerMinute = 1
		return func(w *world, _ string) { w.configure(scheduler.QueueChanged{Queue: "team", Preemption: p}) }
	}
	write := func(change func(*scheduler.Unit)) func(*world, string) {
		return func(w *world, victim string) { w.write(victim, change) }
	}
	for name, happens := range map[string]func(*world, string){
		"preemption is turned off":   set(scheduler.Preemption{}),
		"it is protected for longer": set(scheduler.Preemption{WithinQueue: true, MinRunTime: scheduler.Period{Set: true, Value: time.Hour}}),
		"it does not borrow":         write(preemptible(false)),
		"it cannot be stopped":       write(unstoppable(true)),
		"its priority is raised":     write(priority(100)),
	} {
		t.Run(name, func(t *testing.T) {
			w, other := pacing(t, "team/prod")
			happens(w, other)
			w.after(10 * time.Minute)
			w.expectWrites(other, scheduler.Evict)
			w.finish("team/a")
			w.finish("team/b")
			w.after(time.Second)
			expectReleased(t, w, "team/prod")
		})
	}
}

func TestADecisionThatWasNotSentIsRepeatedWhenAResourceQuotaIsLowered(t *testing.T) {
	n := newNamespaces(queue.RoundRobin)
	n.quota("a", "q", 1, 0)
	n.submit("a", "job", 1, 2)
	plan, _ := n.core.Next(n.now)
	if len(plan) != 1 || plan[0].Kind != scheduler.Explain {
		t.Fatalf("sent %+v, want one Explain", plan)
	}
	n.quota("a", "q", 2, 0)
	if plan, _ := n.core.Next(n.now); len(plan) != 0 {
		t.Fatalf("sent %+v", plan)
	}
	n.quota("a", "q", 1, 0)
	n.version++
	n.core.Apply(n.now, scheduler.Written{Write: &plan[0], Version: n.version, At: n.now})
	plan, _ = n.core.Next(n.now)
	if len(plan) != 0 {
		t.Fatalf("sent %+v although the quota was lowered", plan)
	}
	require.NoError(t, n.core.Check())
}

func TestAUnitIsEvictedOnceItsAdmissionIsWrittenAlthoughItsQuotaIsGone(t *testing.T) {
	a := owning("a", cpu("2"), cpu("2"))
	w := reclaiming(t, owning("root", nil, cpu("2"), a, leaf("b", cpu("2"), "b")))
	w.submit("b/borrows", cpu("2"))
	w.hearAndThink()
	w.expectSent(scheduler.Dequeue)
	w.plant(owning("root", nil, cpu("2"), a))
	w.submit("a/owed", cpu("2"))
	w.hearAndThink()
	w.after(10 * time.Second)
	expectEvicted(t, w, "b/borrows")
}

func TestAReservedUnitIsReleasedWhenItsEvictionIsWithdrawn(t *testing.T) {
	w := checking(t, "one")
	w.configure(scheduler.QueueChanged{Queue: "root", Checks: "one", Preemption: scheduler.Preemption{WithinQueue: true, MaxPerMinute: 1}})
	w.submitAll(cpu("2"), "a/1", "a/2")
	w.enqueue("a/high", cpu("4"), priority(1000))
	other := w.notEvicted("a/1", "a/2")
	w.decide(other, "one", scheduler.Ready, "")
	w.settle()
	w.delete("a/high")
	w.after(time.Hour)
	expectReleased(t, w, other)
}

func TestAUnitOfAKindThatIsOffGivesItsQuotaBackWhenItsPodsAreGone(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("8"), "a"))
	w.enqueue("a/job", cpu("4"), ofKind(1))
	placed(w, "")
	w.turnOff(1)
	w.after(time.Hour)
	w.podGone("pod-0")
	w.after(time.Hour)
	expectReleased(t, w)
}

func TestAUnitThatNoLongerReplacesALostOneWaitsForRoom(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.enqueue("a/runs", cpu("4"))
	w.submit("a/lost", cpu("3"), restored(0))
	w.hearAndThink()
	w.expectSent(scheduler.Dequeue)
	w.deny(0)
	w.write("a/lost", func(u *scheduler.Unit) { u.Restored = false })
	w.after(time.Hour)
	expectReleased(t, w, "a/runs")
}

func TestAUnitWhoseReleaseIsBeingWrittenIsProtectedForItsMinRunTime(t *testing.T) {
	w := checking(t, "one")
	w.configure(scheduler.QueueChanged{Queue: "root", Checks: "one", Preemption: scheduler.Preemption{WithinQueue: true,
		MinRunTime: scheduler.Period{Set: true, Value: 10 * time.Minute}}})
	w.enqueue("a/job", cpu("4"))
	w.decide("a/job", "one", scheduler.Ready, "")
	w.hearAndThink()
	w.expectSent(scheduler.Dequeue)
	w.submit("a/high", cpu("4"), priority(1000))
	w.hearAndThink()
	w.after(9 * time.Minute)
	w.expectWrites("a/job", scheduler.Evict)
	expectReleased(t, w, "a/job")
	w.after(2 * time.Minute)
	w.expectWrites("a/job", scheduler.Evict, "Preempted")
}
