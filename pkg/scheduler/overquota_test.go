package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// expectOverQuota verifies with the API objects of a world at rest that exactly the exceeded limits are reported, by
// exactly the units whose pods exceed what was admitted.
func expectOverQuota(t *rapid.T, w *world) {
	w.lasting = true
	defer func() { w.lasting = false }()
	used := w.charged()
	var want, got []string
	exceeded := map[quota.Space]bool{}
	for i, usage := range used.Usage() {
		for _, limit := range usage.Max {
			space := quota.Space{Node: quota.NodeID(i), Resource: limit.ID}
			if room := used.Room(space); room < 0 {
				exceeded[space] = true
				want = append(want, fmt.Sprint(usage.Path, " ", w.names.Name(limit.ID)))
			}
		}
	}
	for _, excess := range w.excesses() {
		got = append(got, fmt.Sprint(excess.Node, " ", excess.Resource))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Fatalf("exceeded limits are %q, want %q", got, want)
	}
	for key, u := range w.units {
		over := false
		group, refusal := used.Place(u.Namespace(), u.QuotaName)
		if refusal != nil {
			group = used.Nearest(u.Quota)
		}
		requested := w.requested(u.Namespace(), func(p pods.Pod) bool { return p.Owner == u.Owner || p.Owner == u.Label })
		for _, a := range requested {
			admitted, _ := asked(u).Requests.Get(a.ID)
			over = over || a.Value > admitted && group != nil && slices.ContainsFunc(group.Nodes(), func(n quota.NodeID) bool {
				return exceeded[quota.Space{Node: n, Resource: a.ID}]
			})
		}
		if over = over && holds(u) && !u.Over; over != u.OverQuota {
			t.Fatalf("unit %s: OverQuota is %t, want %t; its pods request %v, admitted was %v", key, u.OverQuota, over, requested, u.Demand.Requests)
		}
	}
}

func (w *world) excesses() []quota.Excess {
	excesses, _ := w.core.Excesses()
	return excesses
}

// grownWorld returns a world with a running unit a/grown of 1 cpu in a quota of 4 cpu, whose pods request as many cpu
// as given when they are created.
func grownWorld(t *testing.T) (w *world, pod func(name string, cpus int64, terminating bool)) {
	w = newWorld(t, roundRobin(), tree.Node{Name: "root", Children: []tree.Node{leaf("a", cpu("4"), "a"), leaf("b", nil, "b")}})
	w.exact = false // pods are created without quota
	w.enqueue("a/grown", cpu("1"))
	return w, func(name string, cpus int64, terminating bool) {
		p := w.podOf("a/grown", name, cpus*1000)
		p.Terminating = terminating
		w.pod(p)
	}
}

func TestAQuotaAboveItsLimitIsReportedAfterTenSeconds(t *testing.T) {
	w, pod := grownWorld(t)
	w.enqueue("a/small", cpu("1"))
	pod("p0", 6, false)
	w.after(9900 * time.Millisecond)
	if len(w.excesses()) != 0 || w.units["a/grown"].OverQuota {
		t.Error("it is reported before 10 s")
	}
	w.after(200 * time.Millisecond)
	want := []quota.Excess{{Node: "root/a", Resource: "cpu", Used: 7000, Limit: 4000}}
	if got := w.excesses(); !slices.Equal(got, want) {
		t.Errorf("excesses are %+v, want %+v", got, want)
	}
	marks := w.expectWrites("a/grown", scheduler.MarkOverQuota, wellknown.ReasonLimitExceeded)
	w.expectCount("a/small", scheduler.MarkOverQuota, 0)
	const message = "the pods of the job request 6 cpu, but 1 was admitted; quota root/a is above its limit: cpu is used 7 of max 4"
	if marks[0].Message != message {
		t.Errorf("the message is %q, want %q", marks[0].Message, message)
	}
	w.after(time.Minute)
	w.expectCount("a/grown", scheduler.MarkOverQuota, 1)

	w.submit("a/next", cpu("1"))
	w.after(time.Minute)
	if holds(w.units["a/next"]) {
		t.Error("a unit is admitted to a quota above its limit")
	}
	w.podGone("p0")
	w.after(2 * time.Second)
	if w.units["a/grown"].OverQuota || len(w.excesses()) != 0 {
		t.Errorf("the pod is gone, but OverQuota is %t and excesses are %+v", w.units["a/grown"].OverQuota, w.excesses())
	}
	if !holds(w.units["a/next"]) {
		t.Error("the quota is below its limit, but the next unit waits")
	}
}

func TestPodsThatAreBeingDeletedDoNotPutAQuotaAboveItsLimit(t *testing.T) {
	w, pod := grownWorld(t)
	expect := func(n int, after time.Duration, why string) {
		t.Helper()
		w.after(after)
		if got := w.excesses(); len(got) != n {
			t.Errorf("excesses are %+v, want %d: %s", got, n, why)
		}
	}
	pod("old", 3, true)
	pod("new", 3, false)
	expect(0, time.Minute, "one of both pods is being deleted")
	pod("old", 3, false) // as if the operator kept it after all
	expect(0, 9*time.Second, "it is less than 10 s")
	expect(1, 2*time.Second, "it is more than 10 s")
	pod("old", 3, true)
	expect(0, 2*time.Second, "one is being deleted again")
	if w.units["a/grown"].OverQuota {
		t.Error("the unit is still marked")
	}
}

func TestALimitThatIsLoweredIsReportedButByNoUnit(t *testing.T) {
	w, _ := grownWorld(t)
	w.enqueue("a/more", cpu("2"))
	w.plant(tree.Node{Name: "root", Children: []tree.Node{leaf("b", nil, "b"), leaf("a", cpu("2"), "a")}})
	w.after(5 * time.Second)
	w.plant(tree.Node{Name: "root", Children: []tree.Node{leaf("a", cpu("2"), "a"), leaf("b", nil, "b")}}) // a different order, the same limits
	w.after(6 * time.Second)
	if got := w.excesses(); len(got) != 1 || got[0].Node != "root/a" || got[0].Limit != 2000 {
		t.Errorf("excesses are %+v, want one of root/a: its limit was lowered 11 s ago", got)
	}
	for key := range w.units {
		w.expectCount(key, scheduler.MarkOverQuota, 0)
	}
	w.plant(tree.Node{Name: "root", Children: []tree.Node{leaf("a", cpu("3"), "a"), leaf("b", nil, "b")}})
	w.after(2 * time.Second)
	if got := w.excesses(); len(got) != 0 {
		t.Errorf("excesses are %+v, want none: the limit was raised", got)
	}
}

func TestAMarkSurvivesARestartAndIsClearedAfterIt(t *testing.T) {
	w, pod := grownWorld(t)
	pod("p0", 6, false)
	w.after(11 * time.Second)
	w.restart()
	w.after(11 * time.Second)
	w.expectCount("a/grown", scheduler.MarkOverQuota, 1)
	w.restart()
	w.podGone("p0")
	w.after(2 * time.Second)
	require.Says(t, "the unit", w.expectWrites("a/grown", scheduler.ClearOverQuota, wellknown.ReasonWithinLimits)[0].Message, "within its limits")
}
