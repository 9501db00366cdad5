package tree_test

import (
	"slices"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
)

func TestAShareIsOfTheResourceOfWhichTheNodeWouldUseTheMost(t *testing.T) {
	f := build(t, "1", node("root", "", "cpu=100 memory=100Gi",
		withMin("cpu=10 memory=4Gi", node("guaranteed", "guaranteed", "cpu=50 memory=50Gi")),
		withMin("cpu=0", node("zero", "zero", "cpu=40")),
		node("limited", "limited", "cpu=20"),
		node("free", "free", "")))
	f.group("guaranteed").Charge(&quota.Charge{Demand: f.demand("cpu=4 memory=1Gi")})
	for _, c := range []struct {
		name, group, demand string
		want                quota.Share
	}{
		{"of min, the greater share counts", "guaranteed", "cpu=1 memory=2Gi", quota.Share{Kind: quota.OfMin, Used: 3 << 30, Due: 4 << 30}},
		{"only what is requested counts", "guaranteed", "cpu=1", quota.Share{Kind: quota.OfMin, Used: 5000, Due: 10000}},
		{"what min does not name does not count beside what it names", "guaranteed", "cpu=1 nvidia.com/gpu=8", quota.Share{Kind: quota.OfMin, Used: 5000, Due: 10000}},
		{"a min of zero is none", "zero", "cpu=1", quota.Share{Kind: quota.OfMax, Used: 1000, Due: 40000}},
		{"without min, of max", "limited", "cpu=5", quota.Share{Kind: quota.OfMax, Used: 5000, Due: 20000}},
		{"of nothing that is named", "free", "cpu=5", quota.Share{Kind: quota.OfNothing}},
		{"nothing requested that is named", "limited", "nvidia.com/gpu=5", quota.Share{Kind: quota.OfNothing}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := f.Share(quota.Branch{Node: f.group(c.group).Nodes()[0]}, f.demand(c.demand)); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestWhatIsOwedIsWithinMin(t *testing.T) {
	f := build(t, "1", node("root", "", "cpu=100",
		withMin("nvidia.com/gpu=4 kube-queue/max-jobs=3", node("gpus", "gpus", "")),
		withMin("kube-queue/max-jobs=3", node("jobs", "jobs", "")),
		node("none", "none", "cpu=10")))
	f.group("gpus").Charge(&quota.Charge{Demand: f.demand("nvidia.com/gpu=1")})
	for _, c := range []struct {
		name, group, demand string
		want                bool
	}{
		{"up to min", "gpus", "nvidia.com/gpu=3", true},
		{"beyond min", "gpus", "nvidia.com/gpu=4", false},
		{"what min does not name is not bounded by it", "gpus", "nvidia.com/gpu=1 cpu=90", true},
		{"nothing that min names is owed to nobody", "gpus", "cpu=1", false},
		{"a number of jobs alone is no guarantee", "jobs", "cpu=1", false},
		{"without min nothing is owed", "none", "cpu=1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := owed(f.group(c.group), f.demand(c.demand)); got != c.want {
				t.Errorf("owed: %t, want %t", got, c.want)
			}
		})
	}
	f.group("gpus").Charge(&quota.Charge{Demand: f.demand("nvidia.com/gpu=1")})
	f.group("gpus").Charge(&quota.Charge{Demand: f.demand("nvidia.com/gpu=1")})
	if !owed(f.group("gpus"), f.demand("nvidia.com/gpu=1")) {
		t.Error("a fourth job is not owed, but max-jobs is a limit and guarantees nothing")
	}
}

// owed reports whether the group is owed the demand against the siblings of its node.
func owed(g quota.Group, d quota.Demand) bool {
	return g.Owed(d, quota.Branch{Node: g.Nodes()[0]})
}

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
	if err != nil {
		t.Fatal(err)
	}
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

// What the group of an inner node uses above what is left to it is borrowed, although the node as a whole uses
// no more than is guaranteed to it.
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

// What a child is guaranteed is guaranteed to its parent, however little the parent's own min is.
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
