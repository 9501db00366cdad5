package tree_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/oracle"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// As planned, everything matches an oracle in which the plan was carried out. Until then, a demand fits if it fits both
// now and then. Without the plan, everything is as before.
func TestPropertyAPlanIsAsIfItWereCarriedOut(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		for range rapid.IntRange(0, 6).Draw(t, "charges") {
			if rapid.IntRange(0, 3).Draw(t, "with pods") == 0 {
				m.chargePods(t)
			} else {
				m.charge(m.drawDemand(t))
			}
		}
		before := m.all()
		planned := *m.oracle
		planned.Charged = slices.Clone(m.oracle.Charged)
		var undo []func()
		for _, c := range slices.Clone(m.charged) {
			if rapid.IntRange(0, 2).Draw(t, "leaves") == 0 {
				m.PlanUncharge(c.Group, &c.Charge)
				undo = append(undo, func() { m.Plan(c.Group, &c.Charge) })
				i := slices.IndexFunc(planned.Charged, func(o oracle.Charged) bool { return o.Path == c.Group.Path() && o.Charge.Same(&c.Charge) })
				planned.Charged = slices.Delete(planned.Charged, i, i+1)
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "claims") {
			g, d := m.drawDemand(t)
			c := quota.Charge{Demand: d}
			m.Plan(g, &c)
			undo = append(undo, func() { m.PlanUncharge(g, &c) })
			planned.Charged = append(planned.Charged, oracle.Charged{Path: g.Path(), Charge: c})
		}
		for range 64 {
			kept += m.expectPlanned(t, &planned)
		}
		for _, u := range undo {
			u()
		}
		if after := m.all(); after != before {
			t.Fatalf("without the plan:\n%s\nbefore:\n%s", after, before)
		}
		m.expectExactSums(t)
	})
	if kept < 2 {
		t.Errorf("room was kept only %d times: the test proves little", kept)
	}
}

// expectPlanned compares one demand with the oracle of the plan. It returns 1 if room was kept from the demand.
func (m *model) expectPlanned(t *rapid.T, planned *oracle.Tree) (kept int) {
	g, d := m.drawDemand(t)
	m.AsPlanned(func() {
		got := wellknown.Reason("")
		if r := g.Fits(d); r != nil {
			got = r.Reason
		}
		if want := planned.Refuses(g.Path(), d); got != want {
			t.Fatalf("as planned, %v in %s is refused for %q, want %q", d, g.Path(), got, want)
		}
	})
	refusal, now := g.Fits(d), m.oracle.Refuses(g.Path(), d)
	if m.oracle.Reserving { // borrowing is decided only now
		return 0
	}
	if then := planned.Refuses(g.Path(), d); (refusal == nil) != (now == "" && then == "") {
		t.Fatalf("%v in %s: %+v, now %q and as planned %q", d, g.Path(), refusal, now, then)
	}
	if refusal == nil || now != "" {
		return 0
	}
	if room := m.Room(refusal.Lack.Space); room >= refusal.Lack.Amount {
		t.Fatalf("%v in %s lacks %+v, and there is room of %d", d, g.Path(), refusal.Lack, room)
	}
	return 1
}

// all returns all visible rooms and the usage of all nodes.
func (m *model) all() string {
	var seen strings.Builder
	for i, usage := range m.Usage() {
		for _, name := range resourceNames {
			for bound := range quota.Bounds {
				room := m.Room(quota.Space{Node: quota.NodeID(i), Resource: m.names.ID(name), Bound: bound})
				seen.WriteString(resources.Format("", room) + " ")
			}
		}
		seen.WriteString(usage.Path + "\n")
	}
	return seen.String()
}

func TestReclaimIsSwitchedOffByTheAttributeOfANodeOrAnAncestor(t *testing.T) {
	names := resources.NewNames()
	never := map[string]string{wellknown.ReclaimAttribute: wellknown.ReclaimNever}
	inner := node("inner", "", "", node("a", "a", ""))
	inner.Attributes = never
	own := node("b", "b", "")
	own.Attributes = never
	for _, reclaim := range []bool{true, false} {
		built, _, err := tree.New(names, node("root", "", "", inner, own, node("c", "c", "")), tree.Options{Reclaim: reclaim})
		require.NoError(t, err)
		for namespace, want := range map[string]bool{"a": false, "b": false, "c": reclaim} {
			g, refusal := built.Place(namespace, "")
			if refusal != nil {
				t.Fatal(refusal.Message())
			}
			if got := built.Reclaims(g); got != want {
				t.Errorf("jobs of %s are evicted for others: %t, want %t with reclaim %t", namespace, got, want, reclaim)
			}
		}
	}
}
