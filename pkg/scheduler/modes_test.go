package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// StrictConsistency: whatever each of them has been through, the highest-priority
// earliest unit that fits is the next, backoff or not.
func TestPropertyWithPriorityTheFirstThatFitsIsNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, scheduler.Options{Policy: queue.Priority}, leaf("root", cpu("10"), "a"))
		fill(t, w)
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			w.after(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms")) * time.Millisecond)
			endSome(t, w)
			w.deliverAll()
			want := expectedReleases(w)
			w.think()
			if got := releases(w.sent); !slices.Equal(got, want) {
				t.Fatalf("released are %v, want %v", got, want)
			}
			w.settle()
			fill(t, w)
		}
	})
}

// RoundRobin: no room stays idle that a unit could use, whatever is in backoff.
func TestPropertyInRoundRobinNoRoomIsIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, roundRobin(), owning("root", nil, cpu("12"), owning("a", nil, cpu("10")), owning("b", nil, cpu("10"))))
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			fill(t, w)
			endSome(t, w)
			w.settle()
			o := w.oracle()
			for _, u := range w.units {
				group, _ := w.tree.Place(u.Namespace(), u.QuotaName)
				if u.Phase == scheduler.Waiting && o.Refuses(group.Path(), asked(u)) == "" {
					t.Fatalf("unit %s fits and waits", u.Key)
				}
			}
			w.after(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms")) * time.Millisecond)
		}
	})
}

func fill(t *rapid.T, w *world) {
	for range rapid.IntRange(0, 6).Draw(t, "submitted") {
		key := fmt.Sprintf("%s/%04d", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), w.version)
		w.submit(key, cpu(fmt.Sprint(rapid.IntRange(1, 11).Draw(t, "cpu"))), priority(int32(rapid.IntRange(0, 2).Draw(t, "priority"))))
	}
}

func releases(plan scheduler.Plan) (keys []string) {
	for _, w := range plan {
		if w.Kind == scheduler.Dequeue {
			keys = append(keys, w.Key)
		}
	}
	return keys
}

func TestAQueueCapsThePriorityOfItsUnits(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("1"), "a"))
	w.configure(scheduler.QueueChanged{Queue: "root", MaxPriority: scheduler.Cap{Set: true, Value: 5}})
	w.submit("a/running", cpu("1"))
	w.settle()
	for _, key := range []string{"a/5", "a/100"} { // equals here, in this order
		w.submit(key, cpu("1"), priority(map[string]int32{"a/5": 5, "a/100": 100}[key]))
		w.after(time.Second)
	}
	w.finish("a/running")
	w.settle()
	expectReleased(t, w, "a/5")
	w.configure(scheduler.QueueChanged{Queue: "root"})
	w.submit("a/7", cpu("1"), priority(7))
	w.settle()
	w.finish("a/5")
	w.settle()
	expectReleased(t, w, "a/100") // not capped any more
}

func TestBackoffDoesNotCountOnceThePolicyIsAnother(t *testing.T) {
	for _, tried := range []bool{true, false} {
		w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
		if tried { // and refused, so that it is in backoff
			w.submit("a/holder", cpu("4"))
			w.settle()
		}
		w.submit("a/high", cpu("3"), priority(10))
		if tried {
			w.settle()
		} else {
			w.deliver()
		}
		w.now = w.now.Add(100 * time.Millisecond)
		w.configure(scheduler.QueueChanged{Queue: "root", Policy: queue.Priority})
		if tried {
			w.finish("a/holder")
		}
		w.submit("a/low", cpu("2"))
		w.settle()
		expectReleased(t, w, "a/high")
	}
}
