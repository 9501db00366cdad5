package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// twoTeams returns a world with two queues in which higher priority evicts lower priority.
func twoTeams(t *testing.T, root tree.Node, perMinute int32) *world {
	w := reclaiming(t, root)
	for _, name := range []string{"root-a", "root-b"} {
		w.configure(scheduler.QueueChanged{Queue: name, Preemption: scheduler.Preemption{WithinQueue: true, MaxPerMinute: perMinute}})
	}
	return w
}

// Another unit would get the room of the second victim, which would be evicted for a unit that already runs.
func TestAUnitDoesNotStartWithTheRoomOfOthersBeforeItsVictimsAreEvicted(t *testing.T) {
	w := twoTeams(t, owning("root", nil, cpu("10"), leaf("a", nil, "a"), leaf("b", nil, "b")), 0)
	w.configure(scheduler.QueueChanged{Queue: "root-a", Preemption: scheduler.Preemption{WithinQueue: true, MaxPerMinute: 1}})
	w.submitAll(cpu("2"), numbered("a", 2)...)
	w.submitAll(cpu("3"), numbered("b", 2)...)
	w.enqueue("b/high", cpu("6"), priority(1))
	w.enqueue("a/high", cpu("4"), priority(1))
	expectEvicted(t, w, "a/01", "b/00", "b/01")
	w.write("b/01", stop)
	w.write("a/01", stop)
	w.settle()
	expectReleased(t, w, "a/00", "b/00")
	w.change("b/00", stop)
	expectReleased(t, w, "a/00", "b/high")
	w.after(time.Minute)
	expectEvicted(t, w, "a/00")
	w.stopEvicted()
	expectReleased(t, w, "a/high", "b/high")
}

// The same within a queue: the unit ahead may take the room, and the core decides again for the unit behind it.
func TestAVictimIsNotEvictedForAUnitThatHasStartedWithTheRoomOfOneBehindIt(t *testing.T) {
	w := preempting(t, owning("team", cpu("8"), cpu("8")), "team")
	w.configure(scheduler.QueueChanged{Queue: "team", Preemption: scheduler.Preemption{WithinQueue: true, MaxPerMinute: 1}})
	w.submitAll(cpu("2"), numbered("team", 4)...)
	w.enqueue("team/high", cpu("4"), priority(2))
	expectEvicted(t, w, "team/03")
	w.now = w.now.Add(time.Minute)
	w.enqueue("team/middle", cpu("2"), priority(1)) // its victim is evicted before the other unit's second one
	expectEvicted(t, w, "team/01", "team/03")
	w.stopEvicted()
	expectReleased(t, w, "team/00", "team/02", "team/high")
	w.after(2 * time.Minute)
	for _, eviction := range w.writes("team/02", scheduler.Evict) {
		if eviction.EvictedFor != w.units["team/middle"].UID {
			t.Fatalf("team/02 is evicted for %s, which runs", w.keyOf(eviction.EvictedFor))
		}
	}
	w.stopEvicted()
	expectReleased(t, w, "team/00", "team/high", "team/middle")
}

// A unit starts before its victim has stopped, because another one ended, and is then evicted itself.
func TestAUnitThatIsQueuedAgainDoesNotClaimTheRoomOfItsVictimsTwice(t *testing.T) {
	for name, restart := range map[string]bool{"in one run": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			w := twoTeams(t, owning("root", nil, cpu("6"), owning("a", cpu("2"), nil), leaf("b", nil, "b")), 0)
			w.submit("a/low", cpu("2"), preemptible(false))
			w.submitAll(cpu("2"), "b/00", "b/01")
			w.enqueue("b/middle", cpu("2"), priority(1))
			expectEvicted(t, w, "b/01")
			w.finish("b/00")
			w.after(time.Second)
			expectReleased(t, w, "a/low", "b/01", "b/middle")
			w.submit("a/high", cpu("2"), priority(1))
			w.after(time.Second)
			w.submit("b/top", cpu("2"), priority(3))
			w.after(time.Second)
			if restart {
				w.restart()
				w.settle()
			}
			expectEvicted(t, w, "b/01", "b/middle")
			w.write("b/middle", stop)
			w.after(time.Second)
			w.write("b/01", stop)
			w.after(time.Second)
			expectReleased(t, w, "a/high", "a/low", "b/top")
		})
	}
}

// While its start is being written, a unit is not a candidate.
func TestAUnitIsEvictedThatWasStartingWhenTheOtherCame(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.Priority}, owning("team", gpu("1"), gpu("1")))
	w.configure(scheduler.QueueChanged{Queue: "team", Preemption: scheduler.Preemption{WithinQueue: true}})
	w.submit("team/dev", gpu("1"))
	w.hearAndThink()
	w.submit("team/prod", gpu("1"), priority(1))
	w.hearAndThink()
	expectReleased(t, w)
	w.after(2 * time.Second)
	expectEvicted(t, w, "team/dev")
}

// Jobs that stop for another reason make room for a unit without victims of its own. Neither a restart nor a new tree
// gives that room to another unit.
func TestRoomStaysKeptForAUnitThatNeedsNoVictims(t *testing.T) {
	for name, happens := range map[string]func(*world){
		"in one run": func(*world) {}, "after a restart": (*world).restart, "after a change of the tree": func(w *world) { w.plant(w.root) },
	} {
		t.Run(name, func(t *testing.T) {
			w := reclaiming(t, owning("root", nil, cpu("6"), owning("a", cpu("2"), nil), leaf("b", nil, "b"), owning("c", cpu("2"), nil)))
			w.configure(scheduler.QueueChanged{Queue: "root-a", Rank: 1})
			borrowers := numbered("b", 6)
			for i, key := range borrowers {
				w.submit(key, cpu("1"), unstoppable(i < 4))
			}
			w.settle()
			for _, key := range borrowers[4:] {
				w.write(key, func(u *scheduler.Unit) { u.Evicted, u.Eviction = true, scheduler.Eviction{At: w.now} })
			}
			w.submit("c/first", cpu("2"))
			w.after(10 * time.Second)
			w.submit("a/second", cpu("2"))
			w.after(10 * time.Second)
			happens(w)
			w.settle()
			w.stopEvicted()
			w.after(time.Second)
			expectReleased(t, w, append(borrowers[:4:4], "c/first")...)
		})
	}
}
