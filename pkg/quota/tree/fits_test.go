package tree_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

func TestADemandFitsWithinTheLimitsOfItsChain(t *testing.T) {
	root := node("root", "", "cpu=8 memory=16Gi",
		node("team", "", "cpu=6 nvidia.com/gpu=4",
			node("dev", "dev", "cpu=4"),
			node("prod", "prod", "")),
		node("other", "other", "memory=0"))
	for _, c := range []struct{ why, held, holder, requested, asker, want string }{
		{"an empty tree has room", "", "dev", "cpu=4", "dev", ""},
		{"a demand may fill its quota to the brim", "cpu=1", "dev", "cpu=3", "dev", ""},
		{"a thousandth above the own limit", "cpu=1", "dev", "cpu=3001m", "dev", "QuotaExceeded root/team/dev cpu"},
		{"the limit above counts what a sibling uses", "cpu=4", "prod", "cpu=3", "dev", "QuotaExceeded root/team cpu"},
		{"the root counts what all below use", "cpu=6", "other", "cpu=3", "prod", "QuotaExceeded root cpu"},
		{"the nearest node is named first", "cpu=4", "dev", "cpu=3", "dev", "QuotaExceeded root/team/dev cpu"},
		{"what is not named is not limited", "nvidia.com/gpu=1000", "other", "nvidia.com/gpu=1000", "other", ""},
		{"a limit above holds where the own max does not name the resource", "nvidia.com/gpu=3", "prod", "nvidia.com/gpu=2", "dev", "QuotaExceeded root/team nvidia.com/gpu"},
		{"a limit of zero allows nothing, ever", "", "dev", "memory=1", "other", "ExceedsMaxQuota root/other memory"},
		{"a limit of zero refuses nobody who does not ask", "", "dev", "cpu=1", "other", ""},
		{"a full quota refuses nobody who does not request it", "cpu=4", "dev", "memory=1Gi", "dev", ""},
		{"what can never fit is said before what does not fit now", "cpu=4", "dev", "cpu=1 memory=17Gi", "dev", "ExceedsMaxQuota root memory"},
		{"what can never fit above is said though the own quota allows it", "", "dev", "nvidia.com/gpu=5", "dev", "ExceedsMaxQuota root/team nvidia.com/gpu"},
		{"an amount above all numbers can never fit", "", "dev", "memory=8Pi", "dev", "ExceedsMaxQuota root memory"},
	} {
		t.Run(c.why, func(t *testing.T) {
			f := build(t, "1", root)
			if c.held != "" {
				f.group(c.holder).Charge(&quota.Charge{Demand: f.demand(c.held)})
			}
			f.expect(f.group(c.asker), f.demand(c.requested), c.want)
		})
	}
}

func TestOfSeveralLackingResourcesTheFirstByNameIsNamed(t *testing.T) {
	f := build(t, "1", node("root", "a", "memory=1Gi cpu=1 kube-queue/max-jobs=1 nvidia.com/gpu=1"))
	g := f.group("a")
	g.Charge(&quota.Charge{Demand: f.demand("cpu=1 memory=1Gi nvidia.com/gpu=1")})
	f.expect(g, f.demand("nvidia.com/gpu=1 memory=1 cpu=1"), "QuotaExceeded root cpu")
	f.expect(g, f.demand("nvidia.com/gpu=1 memory=1"), "MaxJobs root kube-queue/max-jobs")
	f.expect(g, f.demand("nvidia.com/gpu=2 memory=2Gi"), "ExceedsMaxQuota root memory")
}

func TestUsersSeeAllLackingResourcesTheScarcestFirst(t *testing.T) {
	f := build(t, "1", node("root", "", "cpu=8 memory=8Gi example.com/a=1 example.com/b=1", node("a", "a", "cpu=4 nvidia.com/gpu=4")))
	g := f.group("a")
	g.Charge(&quota.Charge{Demand: f.demand("cpu=3 memory=4Gi nvidia.com/gpu=4 example.com/a=1 example.com/b=1")})
	for requested, want := range map[string]string{
		"cpu=2": "insufficient cpu in quota root/a: requested 2, used 3 of max 4",
		"cpu=2 nvidia.com/gpu=1 memory=1Gi": "insufficient nvidia.com/gpu in quota root/a: requested 1, used 4 of max 4; " +
			"also insufficient: cpu in root/a (requested 2, used 3 of 4)",
		"cpu=2 memory=5Gi nvidia.com/gpu=1 example.com/a=1 example.com/b=1": "insufficient example.com/a in quota root: requested 1, used 1 of max 1; also insufficient: " +
			"example.com/b in root (requested 1, used 1 of 1), nvidia.com/gpu in root/a (requested 1, used 4 of 4), cpu in root/a (requested 2, used 3 of 4) and 1 more",
		"cpu=9 memory=32Gi nvidia.com/gpu=1": "can never fit in quota root: requested 32Gi memory, max is 8Gi (used 4Gi); request less, or ask an administrator to raise the max of the quota; " +
			"also too large: cpu in root/a (requested 9, at most 4)",
	} {
		d := f.demand(requested)
		if got := g.Fits(d).WithOthers(f.Tree, g, d).Message(); got != want {
			t.Errorf("%s: %q, want %q", requested, got, want)
		}
	}
}

func TestARefusalNamesAskedUsedLimitAndLack(t *testing.T) {
	f := build(t, "1.5", node("root", "", "cpu=2", node("a", "a", "")))
	g := f.group("a")
	g.Charge(&quota.Charge{Demand: f.demand("cpu=2")})
	got := g.Fits(f.demand("cpu=1500m"))
	want := quota.Refusal{Reason: wellknown.ReasonQuotaExceeded, Node: "root", Resource: "cpu", Asked: 1500, Used: 2000, Limit: 3000,
		Lack: quota.Lack{Space: quota.Space{Resource: f.names.ID("cpu")}, Amount: 1500}}
	if got == nil || !reflect.DeepEqual(*got, want) {
		t.Fatalf("refusal %+v, want %+v", got, want)
	}
	if room := f.Room(got.Lack.Space); room != 1000 {
		t.Errorf("room %d, want 1000", room)
	}
	g.Charge(&quota.Charge{Pods: f.demand("cpu=1").Requests, Unqueued: true})
	const says = "insufficient cpu in quota root: requested 1500m, used 3 of max 3 (1 by pods outside of the queue)"
	if got := g.Fits(f.demand("cpu=1500m")); got == nil || got.Message() != says {
		t.Errorf("refusal %+v, want %q", got, says)
	}
}

func TestOversellIsFlooredToBaseUnits(t *testing.T) {
	f := build(t, "1.2", node("root", "a", "cpu=1 memory=4 nvidia.com/gpu=4"))
	g := f.group("a")
	f.expect(g, f.demand("cpu=1200m memory=4 nvidia.com/gpu=4"), "")
	f.expect(g, f.demand("cpu=1201m"), "ExceedsMaxQuota root cpu")
	f.expect(g, f.demand("memory=5"), "ExceedsMaxQuota root memory")
	f.expect(g, f.demand("nvidia.com/gpu=5"), "ExceedsMaxQuota root nvidia.com/gpu")
}

func TestUsageReportsWhatIsBorrowed(t *testing.T) {
	f := build(t, "1", withMin("cpu=10", node("root", "", "",
		withMin("cpu=2 memory=1Gi kube-queue/max-jobs=0", node("a", "a", "")), node("b", "b", ""))))
	f.group("a").Charge(&quota.Charge{Demand: f.demand("cpu=5 memory=1Gi nvidia.com/gpu=1")})
	f.group("b").Charge(&quota.Charge{Demand: f.demand("cpu=3")})
	want := []quota.NodeUsage{
		{Path: "root", Used: f.requests("cpu=8 memory=1Gi nvidia.com/gpu=1"), Jobs: 2},
		{Path: "root/a", Used: f.requests("cpu=5 memory=1Gi nvidia.com/gpu=1"), Borrowed: f.requests("cpu=3"), Jobs: 1},
		{Path: "root/b", Used: f.requests("cpu=3"), Jobs: 1},
	}
	same := func(a, b quota.NodeUsage) bool {
		return a.Path == b.Path && a.Jobs == b.Jobs && a.Used.Equal(b.Used) && a.Borrowed.Equal(b.Borrowed)
	}
	if got := f.Usage(); !slices.EqualFunc(got, want, same) {
		t.Errorf("usage %+v, want %+v", got, want)
	}
}

func TestAMinOfMaxJobsBoundsNoUnitThatRequestsNothing(t *testing.T) {
	f := build(t, "1", withMin("kube-queue/max-jobs=1", node("root", "a", "")))
	g := f.group("a")
	fixed := f.demand("")
	fixed.Preemptible = false
	g.Charge(&quota.Charge{Demand: fixed})
	f.expect(g, fixed, "")
}

func TestAZeroInADemandRequestsNothing(t *testing.T) {
	f := build(t, "1", node("root", "a", "cpu=2 memory=0"))
	g := f.group("a")
	g.Charge(&quota.Charge{Demand: f.demand("cpu=3 memory=1")})
	zeros := f.demand("").Requests.With(f.names.ID("cpu"), 0).With(f.names.ID("memory"), 0)
	f.expect(g, quota.Demand{Requests: zeros}, "")
}

func TestRoomIsWhatADemandMayStillTake(t *testing.T) {
	f := build(t, "1", node("root", "a", "cpu=2"))
	cpu, memory := f.names.ID("cpu"), f.names.ID("memory")
	g := f.group("a")
	g.Charge(&quota.Charge{Demand: f.demand("cpu=3 memory=1Gi")})
	for _, c := range []struct {
		why  string
		node quota.NodeID
		id   resources.ID
		want int64
	}{
		{"negative where use is above the limit", 0, cpu, -1000},
		{"unlimited where max does not name it", 0, memory, math.MaxInt64},
		{"unlimited for a resource never seen", 0, 1000, math.MaxInt64},
		{"none at a node that is not there", 7, cpu, 0},
		{"none at a negative node", -1, cpu, 0},
	} {
		if got := f.Room(quota.Space{Node: c.node, Resource: c.id}); got != c.want {
			t.Errorf("%s: room %d, want %d", c.why, got, c.want)
		}
	}
	f.expect(g, f.demand("cpu=1m"), "QuotaExceeded root cpu")
}

func TestUsageReportsMinAndTheLimitThatIsInForce(t *testing.T) {
	f := build(t, "1.5", withMin("cpu=1 kube-queue/max-jobs=0", node("root", "a", "cpu=3 kube-queue/max-jobs=2")))
	usage := f.Usage()[0]
	if !usage.Min.Equal(f.requests("cpu=1").With(f.names.ID(quota.JobsResource), 0)) || !usage.Max.Equal(f.requests("cpu=4500m kube-queue/max-jobs=3")) {
		t.Errorf("usage %+v", usage)
	}
}

// Exceeds finds everything that Fits finds one after the other. A demand lowered to the smallest limits fits in an
// empty tree, unless one of them allows nothing.
func TestADemandFitsInAnEmptyTreeIfItExceedsNoLimit(t *testing.T) {
	fit, lowered := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		m := drawModel(rt)
		empty, _, err := tree.New(m.names, m.root, m.options)
		require.NoError(rt, err)
		g, d := m.drawDemand(rt)
		g = empty.Groups()[slices.Index(m.Groups(), g)]
		limits := map[resources.ID]int64{}
		refusal, found := g.Fits(d), false
		for _, r := range empty.Exceeds(g, d) {
			found = found || reflect.DeepEqual(r, refusal)
			if least, known := limits[r.Lack.Resource]; !known || r.Limit < least {
				limits[r.Lack.Resource] = r.Limit
			}
			if !r.Impossible() || r.Asked <= r.Limit {
				rt.Fatalf("it is not impossible: %s", r.Message())
			}
		}
		if (refusal == nil) != (len(limits) == 0) || refusal != nil && !found {
			rt.Fatalf("it is refused by %+v, and exceeds %v", refusal, limits)
		}
		if refusal == nil {
			fit++
			return
		}
		for id, limit := range limits {
			if limit == 0 {
				return
			}
			d.Requests = d.Requests.With(id, limit)
		}
		if r := g.Fits(d); r != nil {
			rt.Fatalf("it is lowered, and refused: %s", r.Message())
		}
		lowered++
	})
	if fit == 0 || lowered == 0 {
		t.Errorf("%d demands fit and %d are lowered", fit, lowered)
	}
}
