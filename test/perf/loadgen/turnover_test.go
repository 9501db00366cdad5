package loadgen

import "testing"

func TestTheTreeOfATurnoverHasTheNodesAndTheUnits(t *testing.T) {
	for _, c := range []struct{ nodes, units int }{{3, 1}, {20, 300}, {21, 300}, {1000, 100_000}} {
		s := TurnoverScenario("unit", c.nodes, c.units)
		nodes := 1 + s.Parents.Count + s.LeafCount()
		if nodes != c.nodes || s.Units() < c.units || s.Units() >= c.units+s.LeafCount() {
			t.Errorf("%d nodes and %d units: %d and %d", c.nodes, c.units, nodes, s.Units())
		}
		if held := float64(run(t, s).Held()); held != s.Capacity() {
			t.Errorf("%d nodes: the quota is that of %v units, not %v", c.nodes, s.Capacity(), held)
		}
	}
}

func TestTheLastUnitOfALeafIsTheLastOfItsNamespace(t *testing.T) {
	stage := run(t, TurnoverScenario("unit", 20, 90))
	namespace, unit, job := stage.Last(3)
	if index, ok := stage.Index(unit); !ok || index != 90-18+3 {
		t.Errorf("unit %s has the index %d", unit, index)
	}
	if namespace != "perf-0-3" || job != "unit-3-4" {
		t.Errorf("it is %s in %s", job, namespace)
	}
}
