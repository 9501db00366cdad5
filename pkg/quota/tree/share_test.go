package tree_test

import (
	"slices"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

func TestTheNearestNodeIsTheLongestPathThatIsLeft(t *testing.T) {
	f := build(t, "1", node("root", "", "", node("a", "", "", node("b", "b", "")), node("ab", "ab", "")))
	for path, want := range map[string]string{
		"root/a/b":        "root/a/b",
		"root/a/b/gone":   "root/a/b",
		"root/a/gone/b":   "root/a",
		"root/gone":       "root",
		"root/abc":        "root",
		"elsewhere/a/b":   "root",
		"":                "root",
		"root/a/bb":       "root/a",
		"root/ab/x/y/z/q": "root/ab",
	} {
		group := f.Nearest(path)
		if got := group.Path(); got != want {
			t.Errorf("nearest to %q is %s, want %s", path, got, want)
		}
		if f.Nearest(path) != group {
			t.Errorf("nearest to %q is another group each time", path)
		}
		d := f.demand("cpu=1")
		group.Charge(&quota.Charge{Demand: d})
		group.Uncharge(&quota.Charge{Demand: d})
	}
}

func TestWhatANearestNodeHoldsDoesNotUseUpTheMinOfItsGroup(t *testing.T) {
	f := build(t, "1", withMin("cpu=4", node("root", "a", "cpu=10")))
	fixed := f.demand("cpu=3")
	fixed.Preemptible = false
	left := f.Nearest("root/gone")
	left.Charge(&quota.Charge{Demand: fixed})
	f.expect(f.group("a"), fixed, "")
	f.group("a").Charge(&quota.Charge{Demand: fixed})
	f.expect(f.group("a"), fixed, "QuotaExceeded root cpu")
	left.Uncharge(&quota.Charge{Demand: fixed})
	f.expect(f.group("a"), fixed, "QuotaExceeded root cpu")
}

func TestRoomIsAwaitedWithinMinOnlyWhereMinCouldHoldTheDemand(t *testing.T) {
	names := resources.NewNames()
	built, _, err := tree.New(names, node("root", "", "cpu=10",
		withMin("cpu=4", node("a", "a", "")), withMin("cpu=6", node("b", "b", ""))), tree.Options{PauseBorrowing: true})
	require.NoError(t, err)
	f := fixture{Tree: built, t: t, names: names}
	f.group("a").Charge(&quota.Charge{Demand: f.demand("cpu=1")})
	f.group("b").Charge(&quota.Charge{Demand: f.demand("cpu=9")})
	for demand, awaits := range map[string]bool{"cpu=4": true, "cpu=5": false} {
		refusal := f.group("a").Fits(f.demand(demand))
		if refusal == nil || refusal.Reason != wellknown.ReasonQuotaExceeded {
			t.Fatalf("%s is refused with %+v", demand, refusal)
		}
		within := slices.ContainsFunc(refusal.Also, func(l quota.Lack) bool { return l.Bound == quota.Min })
		if within != awaits {
			t.Errorf("%s waits for room within min too: %t, want %t", demand, within, awaits)
		}
	}
}

// Usage of an inner node's own group above the part of the guarantee that is left to it is borrowed, even if the whole
// node stays within its guarantee.
func TestTheGroupOfAnInnerNodeThatBorrowsIsABorrower(t *testing.T) {
	f := build(t, "1", node("root", "", "cpu=10",
		withMin("cpu=4", node("inner", "inner", "cpu=10", withMin("cpu=3", node("leaf", "leaf", "cpu=10")))),
		withMin("cpu=6", node("other", "other", "cpu=10"))))
	borrowers := func(depth int) int64 {
		return f.Room(quota.Space{Node: f.group("inner").Nodes()[depth], Resource: f.names.ID("cpu"), Bound: quota.Borrowers})
	}
	charge := &quota.Charge{Demand: f.demand("cpu=2")}
	f.group("inner").Charge(charge)
	for depth, at := range []string{"inner", "root"} {
		if n := borrowers(depth); n != 1 {
			t.Errorf("%s has %d borrowers, want 1", at, n)
		}
	}
	f.group("inner").Uncharge(charge)
	if n := borrowers(0); n != 0 {
		t.Errorf("%d borrowers are left of nothing that is charged", n)
	}
}

// What is guaranteed to a child is guaranteed to its parent, no matter how small the parent's own min is.
func TestANodeWhoseChildrenAreGuaranteedMoreThanItsMinDoesNotBorrowThat(t *testing.T) {
	f := build(t, "1", node("root", "", "cpu=10",
		withMin("cpu=2", node("inner", "", "cpu=10", withMin("cpu=6", node("leaf", "leaf", "cpu=10"))))))
	borrowers := func(depth int) int64 {
		return f.Room(quota.Space{Node: f.group("leaf").Nodes()[depth], Resource: f.names.ID("cpu"), Bound: quota.Borrowers})
	}
	f.group("leaf").Charge(&quota.Charge{Demand: f.demand("cpu=6")})
	for depth, at := range []string{"leaf", "inner", "root"} {
		if n := borrowers(depth); n != 0 {
			t.Errorf("%s has %d borrowers, want 0", at, n)
		}
	}
	f.group("leaf").Charge(&quota.Charge{Demand: f.demand("cpu=1")})
	if n := borrowers(1); n == 0 {
		t.Error("inner has no borrower, although its child uses 7 of 6")
	}
}
