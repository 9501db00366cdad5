package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func TestFreedRoomGoesFirstToWhomItIsGuaranteed(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", nil, cpu("10"), owning("a", cpu("6"), nil), owning("b", cpu("1"), nil)))
	w.submit("b/1", cpu("5"))
	w.submit("b/2", cpu("5"))
	w.settle()
	w.configure(scheduler.QueueChanged{Queue: "root-b", Rank: 100})
	w.submit("b/3", cpu("5"), priority(9))
	w.after(time.Minute)
	w.submit("a/owed", cpu("5"))
	w.after(time.Minute)
	w.finish("b/1")
	w.settle()
	expectReleased(t, w, "a/owed", "b/2")
}

func TestBeyondWhatIsGuaranteedQueuePriorityDecidesThenTheSmallerShareOfMin(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", nil, cpu("12"), owning("a", cpu("1"), nil), owning("b", cpu("2"), nil), owning("c", nil, nil)))
	for _, group := range []string{"a", "b", "c"} {
		for i := range 12 {
			w.submit(fmt.Sprintf("%s/%02d", group, i), cpu("1"), priority(int32(9-i)))
		}
	}
	w.settle()
	// Twice as much for who is owed twice as much, and what has no min comes last.
	if a, b, c := count(w, "a"), count(w, "b"), count(w, "c"); a != 4 || b != 8 || c != 0 {
		t.Fatalf("a has %d, b %d and c %d of 12, want 4, 8 and 0", a, b, c)
	}
	w.configure(scheduler.QueueChanged{Queue: "root-c", Rank: 1})
	finishAll(w)
	w.settle()
	if a, b, c := count(w, "a"), count(w, "b"), count(w, "c"); a != 1 || b != 2 || c != 9 {
		t.Fatalf("with its queue's priority: a has %d, b %d and c %d of 12, want their min, and the rest", a, b, c)
	}
}

// Two trees of hierarchical dominant resource fairness (volcano, docs/design/hdrf.md)
// in which comparing the dominant shares of inner nodes starves one group for what
// its sibling uses of another resource. Weights are equal mins.
func TestAGroupIsNotStarvedForWhatItsSiblingUsesOfAnotherResource(t *testing.T) {
	both := func(n string) map[string]string { return map[string]string{"cpu": n, "gpu": n} }
	for _, c := range []struct {
		name string
		root tree.Node
		asks map[string]string
		want map[string]int
	}{
		{
			name: "complementary siblings",
			root: owning("root", nil, both("24"), owning("n1", both("12"), nil),
				owning("n2", both("12"), nil, owning("n21", both("6"), nil), owning("n22", both("6"), nil))),
			asks: map[string]string{"n1": "gpu", "n21": "cpu", "n22": "gpu"},
			want: map[string]int{"n1": 12, "n21": 24, "n22": 12},
		},
		{
			name: "a saturated node",
			root: owning("root", nil, both("24"), owning("n1", both("6"), nil), owning("n2", both("6"), nil),
				owning("n3", both("6"), nil, owning("n31", both("3"), nil), owning("n32", both("3"), nil)), owning("n4", both("6"), nil)),
			asks: map[string]string{"n1": "cpu", "n2": "cpu", "n31": "cpu", "n32": "gpu", "n4": "gpu"},
			want: map[string]int{"n1": 8, "n2": 8, "n31": 8, "n32": 12, "n4": 12},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, roundRobin(), c.root)
			random := rand.New(rand.NewPCG(1, 2))
			made := 0
			refill := func() {
				for _, group := range []string{"n1", "n2", "n21", "n22", "n31", "n32", "n4"} {
					if resource := c.asks[group]; resource != "" {
						w.submit(fmt.Sprintf("%s/%04d", group, made), map[string]string{resource: "1"})
						made++
					}
				}
			}
			for range 40 {
				refill()
			}
			w.settle()
			for round := range 300 {
				for group, want := range c.want {
					if got := count(w, group); got < want-1 || got > want+1 {
						t.Fatalf("after %d ends %s has %d, want %d", round, group, got, want)
					}
				}
				released := w.released()
				w.finish(released[random.IntN(len(released))])
				refill()
				w.settle()
			}
		})
	}
}

func TestUnitsThatAreNotPreemptibleStayTogetherWithinMin(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", nil, cpu("10"), owning("a", cpu("4"), nil), owning("b", cpu("4"), nil)))
	fixed := preemptible(false)
	w.submit("a/fixed-1", cpu("3"), fixed)
	w.submit("a/fixed-2", cpu("3"), fixed)
	w.submit("a/fixed-never", cpu("5"), fixed)
	w.submit("a/borrows", cpu("5"))
	w.after(10 * time.Second)
	expectReleased(t, w, "a/borrows", "a/fixed-1")
	for key, want := range map[string]struct {
		reason   wellknown.Reason
		sentence string
	}{
		"a/fixed-2": {wellknown.ReasonQuotaExceeded, "insufficient guaranteed cpu in quota root/a: requested 3, used 3 of min 4 by non-preemptible jobs"},
		"a/fixed-never": {wellknown.ReasonExceedsMinQuota, "can never fit in the guarantee of quota root/a: a non-preemptible job requested 5 cpu, min is 4; " +
			"request less, make the job preemptible, or ask an administrator to raise the min of the quota"},
	} {
		reported := w.writes(key, scheduler.Explain)
		if len(reported) != 1 || reported[0].Reason != want.reason || !strings.Contains(reported[0].Message, want.sentence) {
			t.Errorf("%s reports %+v, want %s: %s", key, reported, want.reason, want.sentence)
		}
	}
	// What is borrowed does not count against the guarantee, but the room is its.
	w.finish("a/fixed-1")
	w.settle()
	expectReleased(t, w, "a/borrows", "a/fixed-2")
}

func TestAResourceThatMinDoesNotNameDoesNotEndTheGuarantee(t *testing.T) {
	gpu := map[string]string{"gpu": "4"}
	root := owning("root", nil, map[string]string{"cpu": "100", "gpu": "8"}, owning("a", gpu, nil), owning("b", gpu, nil))
	w := newWorld(t, roundRobin(), root)
	fixed := preemptible(false)
	w.submit("a/both", map[string]string{"cpu": "50", "gpu": "4"}, fixed)
	w.submit("a/cpu", cpu("1"), fixed)
	w.after(5 * time.Second)
	expectReleased(t, w, "a/both")
	if reported := w.writes("a/cpu", scheduler.Explain); len(reported) != 1 || reported[0].Reason != wellknown.ReasonExceedsMinQuota {
		t.Errorf("a unit that requests nothing guaranteed reports %+v", reported)
	}
}

func TestOversellChangedWhileRunning(t *testing.T) {
	root := leaf("root", map[string]string{"cpu": "4", quota.JobsResource: "3"}, "a")
	w := newWorld(t, roundRobin(), root)
	oversell := func(rate string) {
		t.Helper()
		var err error
		if w.treeOpts.Oversell, err = resources.ParseRate(rate); err != nil {
			t.Fatal(err)
		}
		w.exact = false
		w.plant(root)
		w.settle()
	}
	for i := range 8 {
		w.submit(fmt.Sprintf("a/%d", i), cpu("1"))
	}
	w.settle()
	expectReleased(t, w, "a/0", "a/1", "a/2")
	oversell("1.5") // 6 cpu, 4 jobs
	expectReleased(t, w, "a/0", "a/1", "a/2", "a/3")
	oversell("0.5") // 2 cpu, 1 job: nothing is lost, and nothing added until it fits
	expectReleased(t, w, "a/0", "a/1", "a/2", "a/3")
	for _, key := range []string{"a/0", "a/1", "a/2"} {
		w.finish(key)
		w.settle()
	}
	expectReleased(t, w, "a/3")
	w.finish("a/3")
	w.settle()
	expectReleased(t, w, "a/4")
}

// The tree in its forms of change: what runs is charged where it belongs now, or else
// to what is left of where it was.
func TestUnitsFollowATreeThatChanges(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.Priority}, owning("root", nil, cpu("10"),
		owning("dept", nil, cpu("8"), owning("a", nil, nil), owning("b", nil, nil)), owning("c", nil, nil)))
	w.exact = false
	used := func(want map[string]int64) {
		t.Helper()
		for _, usage := range w.tree.Usage() {
			got, _ := usage.Used.Get(w.names.ID("cpu"))
			if got != 1000*want[usage.Path] {
				t.Errorf("%s: %d thousandths of cpu used, want %d cpu", usage.Path, got, want[usage.Path])
			}
		}
	}
	for _, key := range []string{"a/1", "b/1", "a/2"} {
		w.submit(key, cpu("4"))
		w.settle()
	}
	used(map[string]int64{"root": 8, "root/dept": 8, "root/dept/a": 4, "root/dept/b": 4})

	w.plant(owning("root", nil, cpu("12"), owning("dept", nil, cpu("8"), owning("b", nil, nil)), owning("a", nil, nil)))
	w.settle() // a moves out from under the department's limit
	expectReleased(t, w, "a/1", "a/2", "b/1")
	used(map[string]int64{"root": 12, "root/dept": 4, "root/dept/b": 4, "root/a": 8})

	// a and b are removed. What was released below the department counts there.
	w.plant(owning("root", nil, cpu("12"), owning("dept", nil, cpu("9"), owning("c", nil, nil))))
	w.submit("c/1", cpu("1"))
	w.settle()
	expectReleased(t, w, "a/1", "a/2", "b/1") // they run on, and there is no room for c
	used(map[string]int64{"root": 12, "root/dept": 8})
	w.restart()
	w.settle()
	used(map[string]int64{"root": 12, "root/dept": 8})
	w.finish("a/1")
	w.settle()
	used(map[string]int64{"root": 9, "root/dept": 5, "root/dept/c": 1})
}
