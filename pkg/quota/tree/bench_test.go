package tree_test

import (
	"strconv"
	"testing"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// deep returns a group with a chain of nine nodes, and a demand that it has room for.
func deep(t testing.TB) (quota.Group, quota.Demand) {
	n := withMin("cpu=100", node("leaf", "a", "cpu=1000 memory=1000Gi nvidia.com/gpu=100 kube-queue/max-jobs=1000000"))
	for i := range 8 {
		n = node("n"+strconv.Itoa(i), "", "cpu=1000 memory=1000Gi nvidia.com/gpu=100 kube-queue/max-jobs=1000000", n)
	}
	names := resources.NewNames()
	built, _, err := tree.New(names, n, tree.Options{})
	require.NoError(t, err)
	requests, err := resources.Request(names, amounts("cpu=3 memory=3Gi nvidia.com/gpu=1 kube-queue/max-jobs=1"))
	require.NoError(t, err)
	g, _ := built.Place("a", "")
	return g, quota.Demand{Requests: requests, Preemptible: true}
}

func TestAdmittingAllocatesNothing(t *testing.T) {
	g, d := deep(t)
	fixed := d
	fixed.Preemptible = false
	for _, d := range []quota.Demand{d, fixed} {
		c := &quota.Charge{Demand: d}
		g.Charge(c)
		allocs := testing.AllocsPerRun(100, func() {
			if r := g.Fits(d); r != nil {
				t.Error(r.Message())
			}
			g.Charge(c)
			g.Uncharge(c)
		})
		if allocs != 0 {
			t.Errorf("%v allocations", allocs)
		}
	}
}

func TestRefusingAllocatesOnlyTheRefusal(t *testing.T) {
	g, d := deep(t)
	for range 100 {
		g.Charge(&quota.Charge{Demand: d})
	}
	if allocs := testing.AllocsPerRun(100, func() { g.Fits(d) }); allocs > 1 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkFits(b *testing.B) {
	g, d := deep(b)
	b.ReportAllocs()
	for b.Loop() {
		g.Fits(d)
	}
}

func BenchmarkChargeAndRelease(b *testing.B) {
	g, d := deep(b)
	c := &quota.Charge{Demand: d}
	b.ReportAllocs()
	for b.Loop() {
		g.Charge(c)
		g.Uncharge(c)
	}
}
