package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// Two trees of hierarchical dominant resource fairness (volcano, docs/design/hdrf.md) in which comparing the dominant
// shares of inner nodes starves one group because its sibling uses another resource. Weights are equal mins.
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
		require.Says(t, key, w.expectWrites(key, scheduler.Explain, want.reason)[0].Message, want.sentence)
	}
	// Borrowed quota does not count against the guarantee for non-preemptible jobs.
	w.end("a/fixed-1")
	expectReleased(t, w, "a/borrows", "a/fixed-2")
}
