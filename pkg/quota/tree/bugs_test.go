package tree_test

import (
	"math"
	"testing"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Each test covers a bug of older queues.

func TestLimitsThatNeedMoreThan32BitsAreEnforced(t *testing.T) {
	for name, limits := range map[string][]int64{
		"memory":           {math.MaxInt32 - 1, math.MaxInt32, 2 << 30, 4 << 30, 5e9, 400000 << 30},
		"pods":             {math.MaxInt32, math.MaxInt32 + 1, math.MaxInt64 - 1, math.MaxInt64}, // others take them for unlimited
		quota.JobsResource: {1e10},
	} {
		for _, limit := range limits {
			f := build(t, "1", node("root", "a", name+"="+resources.Format(name, limit)))
			all := quota.Demand{Requests: resources.Vector{{ID: f.names.ID(name), Value: limit}}, Preemptible: true}
			f.expect(f.group("a"), all, "")
			f.group("a").Charge(&quota.Charge{Demand: all})
			refusal := f.group("a").Fits(quota.Demand{Requests: resources.Vector{{ID: f.names.ID(name), Value: 1}}, Preemptible: true})
			if refusal == nil || refusal.Resource != name || refusal.Final() {
				t.Errorf("1 beyond %d of %s is refused by %+v", limit, name, refusal)
			}
		}
	}
}

// A restart charges what it finds, so the sum can be anything.
func TestUseAboveAllNumbersIsStillExact(t *testing.T) {
	f := build(t, "1", node("root", "", "memory=1Gi", node("a", "a", "")))
	g := f.group("a")
	great := quota.Demand{Requests: resources.Vector{{ID: f.names.ID("memory"), Value: math.MaxInt64}}}
	var charged []quota.Demand
	for range 5 {
		g.Charge(&quota.Charge{Demand: great})
		charged = append(charged, great)
		f.expect(g, f.demand("memory=1"), "QuotaExceeded root memory")
		if got := f.used("root/a", "memory"); got != math.MaxInt64 {
			t.Errorf("used %d, want the greatest number", got)
		}
	}
	if got := f.Room(quota.Space{Resource: f.names.ID("memory")}); got != math.MinInt64 {
		t.Errorf("room %d, want the smallest number", got)
	}
	for range charged {
		g.Uncharge(&quota.Charge{Demand: great})
	}
	f.expect(g, f.demand("memory=1Gi"), "")
	if got := f.used("root", "memory"); got != 0 {
		t.Errorf("used %d, want 0", got)
	}
}
