package tree_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// probe is a demand that is requested again after every step.
type probe struct {
	group  quota.Group
	demand quota.Demand
	// last refusal, before the step.
	last *quota.Refusal
}

// ask requests the demand again, and compares the result with the step that was taken.
func (p *probe) ask(t *rapid.T, m *model, released bool) {
	before := p.last
	now := p.group.Fits(p.demand)
	p.last = now
	if want := m.oracle.Refuses(p.group.Path(), p.demand); now == nil && want != "" || now != nil && now.Reason != want {
		t.Fatalf("Fits in %s gives %+v, want reason %q", p.group.Path(), now, want)
	}
	if now != nil && !now.Final() && m.Room(now.Lack.Space) >= now.Lack.Amount {
		t.Fatalf("%+v is refused though there is room", now)
	}
	m.expectOwed(t, p.group, p.demand, now)
	if now != nil && slices.ContainsFunc(now.Also, m.hasRoom) {
		t.Fatalf("%+v would be another answer with room that there is", now)
	}
	if before == nil {
		if released && now != nil {
			t.Fatalf("a release took the room in %s: %+v", p.group.Path(), now)
		}
		return
	}
	if !released && now == nil {
		t.Fatalf("a charge made room in %s for what was refused: %+v", p.group.Path(), before)
	}
	if now == nil && !m.hasRoom(before.Lack) && !slices.ContainsFunc(before.Also, m.hasRoom) {
		t.Fatalf("fits in %s though what was lacking is not there: %+v", p.group.Path(), before)
	}
}

func TestAnySequenceOfChargesAndReleasesKeepsTheBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		probes := make([]probe, 4)
		for i := range probes {
			probes[i].group, probes[i].demand = m.drawDemand(t)
			probes[i].last = probes[i].group.Fits(probes[i].demand)
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			step := rapid.SampledFrom([]string{"admit", "admit", "charge", "charge pods", "release"}).Draw(t, "step")
			g, d := m.drawDemand(t)
			switch {
			case step == "release" && len(m.charged) > 0:
				m.release(rapid.IntRange(0, len(m.charged)-1).Draw(t, "which"))
			case step == "charge":
				m.charge(g, d)
			case step == "charge pods":
				m.chargePods(t)
			case step == "admit" && g.Fits(d) == nil:
				m.charge(g, d)
				m.expectWithinLimits(t, g, d)
			}
			for i := range probes {
				probes[i].ask(t, m, step == "release")
			}
			m.expectExactSums(t)
		}
	})
}

func TestCheckFindsWhatIsNotInTheBooks(t *testing.T) {
	f := build(t, "1", node("root", "", "", node("a", "a", "")))
	g, d := f.group("a"), f.demand("cpu=1")
	g.Charge(&quota.Charge{Demand: d})
	err := f.Check(nil)
	if want := "quota root: 1 of kube-queue/max-jobs is counted as used, but the sum of what is charged is 0"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	require.NoError(t, f.Check([]tree.Charged{{Group: g, Charge: quota.Charge{Demand: d}}}))
	other := build(t, "1", node("root", "a", "")).group("a")
	if err := f.Check([]tree.Charged{{Group: g, Charge: quota.Charge{Demand: d}}, {Group: other}}); err == nil {
		t.Error("a charge to another tree goes unnoticed")
	}
}

// A tree does not depend on the order of its maps.
func TestBuildingTwiceGivesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := drawNode(t, 1, new(int))
		names, again := resources.NewNames(), resources.NewNames()
		_, warnings, err := tree.New(names, root, tree.Options{})
		_, warningsAgain, errAgain := tree.New(again, root, tree.Options{})
		if !slices.Equal(warnings, warningsAgain) || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("%v and %v, warnings %q and %q", err, errAgain, warnings, warningsAgain)
		}
		for id := range resources.ID(len(resourceNames)) {
			if names.Name(id) != again.Name(id) {
				t.Fatalf("ID %d is %s and %s", id, names.Name(id), again.Name(id))
			}
		}
	})
}

// Nothing that a user can write makes New panic or accept a broken tree.
func TestAnyNamesAndNamespacesAreTaken(t *testing.T) {
	text := rapid.OneOf(rapid.StringMatching(`[aA./*-]{0,3}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		root := tree.Node{Name: text.Draw(t, "name"), Namespaces: rapid.SliceOf(text).Draw(t, "namespaces")}
		for range rapid.IntRange(0, 6).Draw(t, "children") {
			root.Children = append(root.Children, tree.Node{Name: text.Draw(t, "name"), Namespaces: rapid.SliceOf(text).Draw(t, "namespaces")})
		}
		built, _, err := tree.New(resources.NewNames(), root, tree.Options{})
		if err != nil {
			return
		}
		paths, queues := map[string]bool{}, map[string]bool{}
		for _, usage := range built.Usage() {
			paths[usage.Path] = true
		}
		for _, g := range built.Groups() {
			queues[g.Queue()] = true
		}
		if len(paths) != len(built.Usage()) || len(queues) != len(built.Groups()) {
			t.Fatalf("paths %v, queues %v", slices.Collect(maps.Keys(paths)), slices.Collect(maps.Keys(queues)))
		}
		if g, refusal := built.Place(text.Draw(t, "namespace"), text.Draw(t, "quota")); (g == nil) == (refusal == nil) {
			t.Fatalf("Place gives %v and %v", g, refusal)
		}
	})
}
