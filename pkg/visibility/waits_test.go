package visibility

import (
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func TestAUnitForWhichOthersAreEvictedWaitsForThem(t *testing.T) {
	cl := newCluster(t, teams(), tree.Options{})
	cl.core.Apply(cl.now, scheduler.QueueChanged{Queue: "root-b", Preemption: scheduler.Preemption{WithinQueue: true, MinRunTime: scheduler.Period{Set: true}}})
	for _, key := range []string{"b/one", "c/two", "c/three"} {
		cl.submit(key, cl.request("cpu", 3000))
	}
	cl.submit("b/urgent", cl.request("cpu", 7000), func(u *scheduler.Unit) { u.Priority = 10 })
	for _, c := range []struct {
		access Access
		want   string
		named  int
	}{
		{everything(), "Wait: c/three, c/two stop, which are being evicted for it", 2},
		{only("b"), "Wait: 2 units that you may not list stop, which are being evicted for it", 0},
	} {
		answer := cl.why("b/urgent", c.access)
		if answer.Reason != wellknown.ReasonPreempting || messages(answer) != c.want {
			t.Fatalf("it waits for %s and would be admitted by %s, want %s", answer.Reason, messages(answer), c.want)
		}
		if r := answer.WouldAdmit[0]; len(r.Units) != c.named || int(r.HiddenUnits) != 2-c.named {
			t.Errorf("%d units are named and %d are not", len(r.Units), r.HiddenUnits)
		}
	}
	cl.end("c/two", "c/three")
	if !cl.runs("b/urgent") {
		t.Error("they have stopped, and it is not admitted")
	}
}

// lending is a tree in which b has a min of 1 and borrows the guarantee of a.
func lending() tree.Node {
	return tree.Node{Name: "root", Max: amounts("cpu", "6"), Children: []tree.Node{
		{Name: "a", Namespaces: []string{"a"}, Min: amounts("cpu", "4")},
		{Name: "b", Namespaces: []string{"b"}, Min: amounts("cpu", "1")},
		{Name: "c", Namespaces: []string{"c"}},
	}}
}

func TestAUnitThatMayNotBorrowWaitsForThoseThatAreOwed(t *testing.T) {
	const wait = "Wait: a/owed starts with what is guaranteed to its quota, and then 2 cpu is unused in quota root"
	for _, c := range []struct {
		name   string
		access Access
		want   []string
	}{
		{"with names", everything(), []string{"LowerRequest: request at most 1 cpu, the unused part of the min of quota root/b", wait}},
		{"without names", only("b"), []string{"LowerRequest: request at most 1 cpu, the unused part of the min of quota root/b",
			"Wait: 1 unit that you may not list starts with what is guaranteed to its quota, and then 2 cpu is unused in quota root"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t, lending(), tree.Options{PauseBorrowing: true})
			for _, name := range []string{"one", "two", "three", "four"} {
				cl.submit("c/"+name, cl.request("cpu", 1000))
			}
			cl.submit("a/owed", cl.request("cpu", 4000))
			cl.submit("b/waiting", cl.request("cpu", 2000))
			answer := cl.why("b/waiting", c.access)
			if got := messages(answer); answer.Reason != wellknown.ReasonBorrowingPaused || len(answer.WouldAdmit) < 2 ||
				!startsWith(answer, c.want...) {
				t.Fatalf("it waits for %s: %s\nand would be admitted by\n%s", answer.Reason, answer.Message, got)
			}
			cl.submit("b/lower", cl.request("cpu", 1000))
			if !cl.runs("b/lower") {
				t.Error("a unit that requests the unused min is not admitted")
			}
			cl.end("b/lower", "c/one", "c/two")
			if !cl.runs("a/owed") || cl.runs("b/waiting") {
				t.Fatal("the unit that is owed must be admitted first")
			}
			cl.end("c/three", "c/four")
			if !cl.runs("b/waiting") {
				t.Error("it is unused, and the unit is not admitted")
			}
		})
	}
}

func TestAUnitThatIsOwedWaitsUntilBorrowersMayBeEvicted(t *testing.T) {
	const want = "Wait: kube-queue evicts jobs that have borrowed, when they have run for their minRunTime"
	for _, c := range []struct {
		name           string
		reclaim, waits bool
		request        int
	}{
		{"it is owed", true, true, 4000},
		{"it would borrow", true, false, 5000},
		{"nothing is reclaimed", false, false, 4000},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t, lending(), tree.Options{Reclaim: c.reclaim, PauseBorrowing: true})
			cl.core.Apply(cl.now, scheduler.QueueChanged{Queue: "root-c", Preemption: scheduler.Preemption{MinRunTime: scheduler.Period{Set: true, Value: time.Hour}}})
			for _, name := range []string{"one", "two", "three", "four"} {
				cl.submit("c/"+name, cl.request("cpu", 1000))
			}
			cl.submit("a/owed", cl.request("cpu", c.request))
			if got := messages(cl.why("a/owed", everything())); strings.HasPrefix(got, want) != c.waits {
				t.Errorf("it would be admitted by %s", got)
			}
			if cl.now = cl.now.Add(time.Hour); strings.Contains(messages(cl.why("a/owed", everything())), "minRunTime") {
				t.Error("nothing is protected any more")
			}
		})
	}
}

func startsWith(answer *visibilityv1alpha1.QueueUnitReviewStatus, want ...string) bool {
	for i, text := range want {
		if r := answer.WouldAdmit[i]; string(r.Type)+": "+r.Message != text {
			return false
		}
	}
	return true
}
