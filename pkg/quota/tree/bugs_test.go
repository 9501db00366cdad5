package tree_test

import (
	"math"
	"testing"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Bugs that older queues had, each a test here.

func TestMemoryLimitsOfTwoGibibytesAndMoreAreEnforced(t *testing.T) {
	for _, limit := range []string{"2147483646", "2147483647", "2Gi", "4Gi", "5G", "400000Gi"} {
		f := build(t, "1", node("root", "a", "memory="+limit))
		g := f.group("a")
		f.expect(g, f.demand("memory="+limit), "")
		g.Charge(&quota.Charge{Demand: f.demand("memory=" + limit)})
		f.expect(g, f.demand("memory=1"), "QuotaExceeded root memory")
	}
}

func TestGreatNumbersOfJobsAreALimitToo(t *testing.T) {
	f := build(t, "1", node("root", "a", "kube-queue/max-jobs=10000000000"))
	g := f.group("a")
	jobs := f.names.ID(quota.JobsResource)
	g.Charge(&quota.Charge{Demand: quota.Demand{Requests: resources.Vector{{ID: jobs, Value: 1e10}}}})
	f.expect(g, f.demand("cpu=1"), "MaxJobs root kube-queue/max-jobs")
}

func TestTheNumberThatOthersTakeForUnlimitedIsALimit(t *testing.T) {
	for _, limit := range []int64{math.MaxInt32, math.MaxInt32 + 1, math.MaxInt64 - 1, math.MaxInt64} {
		text := resources.Format("pods", limit)
		f := build(t, "1", node("root", "a", "pods="+text))
		g := f.group("a")
		g.Charge(&quota.Charge{Demand: quota.Demand{Requests: resources.Vector{{ID: f.names.ID("pods"), Value: limit}}}})
		f.expect(g, f.demand("pods=1"), "QuotaExceeded root pods")
	}
}

func TestTheUseOfAllNodesAboveIsNeverAStepBehind(t *testing.T) {
	f := build(t, "1", node("root", "", "cpu=10",
		node("x", "", "", node("a", "a", "cpu=10"), node("b", "b", "cpu=10")), node("c", "c", "cpu=10")))
	for i, namespace := range []string{"a", "b", "c", "a", "b"} {
		g, d := f.group(namespace), f.demand("cpu=2")
		f.expect(g, d, "")
		g.Charge(&quota.Charge{Demand: d})
		if got, want := f.used("root", "cpu"), int64(2000*(i+1)); got != want {
			t.Fatalf("used at the root: %d, want %d", got, want)
		}
	}
	for _, namespace := range []string{"a", "b", "c"} {
		f.expect(f.group(namespace), f.demand("cpu=1"), "QuotaExceeded root cpu")
	}
}

func TestAResourceThatMaxDoesNotNameIsNotReadAsZero(t *testing.T) {
	f := build(t, "1", node("root", "", "cpu=4", node("a", "a", "memory=1Gi")))
	f.expect(f.group("a"), f.demand("cpu=4 memory=1Gi nvidia.com/gpu=8"), "")
}

func TestAZeroThatMaxNamesIsNotReadAsUnlimited(t *testing.T) {
	f := build(t, "1", node("root", "", "", node("a", "a", "nvidia.com/gpu=0")))
	f.expect(f.group("a"), f.demand("nvidia.com/gpu=1"), "ExceedsMaxQuota root/a nvidia.com/gpu")
	f.expect(f.group("a"), f.demand("cpu=1"), "")
}

func TestWhatIsGivenBackIsWhatWasTakenForEveryResource(t *testing.T) {
	f := build(t, "1", node("root", "", "cpu=4", node("a", "a", "")))
	g, d := f.group("a"), f.demand("cpu=3 memory=1Gi nvidia.com/gpu=1 example.com/never-seen=2")
	g.Charge(&quota.Charge{Demand: d})
	g.Uncharge(&quota.Charge{Demand: d})
	for _, usage := range f.Usage() {
		if len(usage.Used) != 0 || usage.Jobs != 0 {
			t.Errorf("left over: %+v", usage)
		}
	}
}

// A restart charges what it finds, and the sum may then be anything.
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
