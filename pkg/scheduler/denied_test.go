package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// denied returns a world in which the release of a/denied, for which there is room, cannot be written.
func denied(t *testing.T) *world {
	w := newWorld(t, roundRobin(), leaf("root", cpu("1"), "a", "b"))
	w.submit("a/denied", cpu("1"))
	w.hearAndThink()
	w.deny(0)
	w.settle()
	return w
}

func TestAUnitThatCannotBeWrittenKeepsNoQuotaFromOthers(t *testing.T) {
	w := denied(t)
	w.enqueue("b/other", cpu("1"))
	expectReleased(t, w, "b/other")
	w.finish("b/other")
	w.after(29 * time.Second)
	expectReleased(t, w)
	w.after(time.Second)
	expectReleased(t, w, "a/denied")
}

func TestAChangeOfAUnitThatCannotBeWrittenHasItTriedAgain(t *testing.T) {
	w := denied(t)
	w.change("a/denied", priority(1))
	expectReleased(t, w, "a/denied")
}

// Its timer ends at the instant at which it is already tried for another reason.
func TestAUnitThatAnEventHasTriedWhenItCanBeWrittenAgainIsWritten(t *testing.T) {
	w := denied(t)
	w.now = w.now.Add(30 * time.Second)
	w.configure(scheduler.QueueChanged{Queue: "root", Rank: 1})
	w.settle()
	expectReleased(t, w, "a/denied")
}

func TestAnEvictionThatIsDeniedIsWrittenLater(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("1"), "a"))
	w.enqueue("a/one", cpu("1"))
	w.write("a/one", deactivate)
	w.hearAndThink()
	w.deny(0)
	w.after(29 * time.Second)
	w.expectWrites("a/one", scheduler.Evict)
	w.after(time.Second)
	w.expectWrites("a/one", scheduler.Evict, "Deactivated")
}

// Otherwise, the room of the denied unit would be awaited for as long as it is denied.
func TestAnotherUnitIsEvictedInPlaceOfOneWhoseEvictionIsDenied(t *testing.T) {
	w := preempting(t, owning("team", gpu("2"), gpu("2")), "team")
	w.submitAll(gpu("1"), "team/a", "team/b")
	w.submit("team/prod", gpu("1"), priority(1000))
	w.hearAndThink()
	w.expectSent(scheduler.Evict) // of b, the latest
	w.deny(0)
	w.after(2 * time.Second)
	expectEvicted(t, w, "team/a")
	w.stopEvicted()
	expectReleased(t, w, "team/b", "team/prod")
}

func TestAUnitWhoseEvictionIsDeniedIsEvictedForAnotherLater(t *testing.T) {
	w := evicting(t)
	w.deny(0)
	w.after(29 * time.Second)
	w.expectWrites("team/dev", scheduler.Evict)
	w.after(time.Second)
	w.expectWrites("team/dev", scheduler.Evict, "Preempted")
}
