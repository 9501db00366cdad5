package loadgen

import (
	"slices"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
)

func TestTheTreeOfATurnoverHasTheNodesAndTheUnits(t *testing.T) {
	for _, c := range []struct{ nodes, units int }{{3, 1}, {20, 300}, {21, 300}, {1000, 100_000}} {
		s := TurnoverScenario("unit", c.nodes, c.units)
		nodes := 1 + s.Parents.Count + s.LeafCount()
		if nodes != c.nodes || s.Units() < c.units || s.Units() >= c.units+s.LeafCount() {
			t.Errorf("%d nodes and %d units: %d and %d", c.nodes, c.units, nodes, s.Units())
		}
		if held := float64(NewRun(nil, s).Held()); held != s.Capacity() {
			t.Errorf("%d nodes: the quota is that of %v units, not %v", c.nodes, s.Capacity(), held)
		}
	}
}

func TestTheLastUnitOfALeafIsTheLastOfItsNamespace(t *testing.T) {
	stage := NewRun(nil, TurnoverScenario("unit", 20, 90))
	namespace, unit, job := stage.Last(3)
	if index, ok := stage.Index(unit); !ok || index != 90-18+3 {
		t.Errorf("unit %s has the index %d", unit, index)
	}
	if namespace != "perf-0-3" || job != "unit-3-4" {
		t.Errorf("it is %s in %s", job, namespace)
	}
}

func TestEachEndIsPairedWithTheReleaseThatUsesItsQuota(t *testing.T) {
	ms := func(all ...int) report.Durations {
		var d report.Durations
		for _, one := range all {
			d = append(d, time.Duration(one)*time.Millisecond)
		}
		return d
	}
	// Two hold quota. Units end at 10, 20, 30, and the last one is not replaced.
	got := refills(ms(30, 10, 20), ms(2, 1, 26, 13), 2, Window{From: 5 * time.Millisecond, To: time.Second})
	if want := ms(3, 6); !slices.Equal(got, want) {
		t.Errorf("the quota is used again after %v, want %v", got, want)
	}
	if got := refills(ms(10, 20), ms(1, 2, 13, 26), 2, Window{From: 15 * time.Millisecond, To: time.Second}); !slices.Equal(got, ms(6)) {
		t.Errorf("in a window of the second end, it is used again after %v", got)
	}
	if got := refills(ms(10), ms(1, 2, 9), 2, Window{To: time.Second}); !slices.Equal(got, ms(0)) {
		t.Errorf("a release that is seen before the answer to the end gives %v", got)
	}
}
