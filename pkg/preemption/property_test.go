package preemption_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/preemption"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/oracle"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// The laws of spec section 7, verified by an oracle that adds everything up again.
func TestPropertyVictimsAreTakenByLaw(t *testing.T) {
	found, reclaimed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		root := drawTree(t)
		h := newHall(t, root)
		for i := range rapid.IntRange(4, 14).Draw(t, "units") {
			h.runAnywhere(t, fmt.Sprintf("u%02d", i))
			h.running[i].Exceeding = rapid.IntRange(0, 9).Draw(t, "exceeding") == 0
		}
		candidates := slices.DeleteFunc(slices.Clone(h.running), func(*preemption.Candidate) bool {
			return rapid.IntRange(0, 5).Draw(t, "never") == 0
		})
		for range 10 {
			some, ofOthers := expectLawful(t, h, root, candidates)
			found, reclaimed = found+some, reclaimed+ofOthers
		}
	})
	if found < 5 || reclaimed < 2 {
		t.Errorf("only %d choices with victims, of whom %d were reclaimed: the test proves little", found, reclaimed)
	}
}

// expectLawful verifies that the victims of one claim are lawful. It returns 1 if there are any, and how many of them
// are reclaimed.
func expectLawful(t *rapid.T, h *hall, root tree.Node, candidates []*preemption.Candidate) (found, reclaimed int) {
	group := rapid.SampledFrom(h.Groups()).Draw(t, "claimant")
	claim := preemption.Claim{Group: group, Demand: h.demand(drawRequests(t)), Reclaims: rapid.Bool().Draw(t, "reclaims")}
	priority := int32(rapid.IntRange(0, 4).Draw(t, "priority of the claimant"))
	if rapid.Bool().Draw(t, "preempts") {
		claim.Preempts = func(c *preemption.Candidate) bool { return c.Priority < priority }
	}
	before := fmt.Sprint(h.Usage())
	victims := preemption.Choose(h.Tree, claim, candidates)
	if after := fmt.Sprint(h.Usage()); after != before {
		t.Fatalf("the choice changed what is charged:\n%s\n%s", before, after)
	}
	if len(victims) == 0 {
		return 0, 0
	}
	found++
	o := h.oracle(root, nil)
	path := group.Path()
	if o.Refuses(path, claim.Demand) == "" {
		t.Fatalf("%v are evicted, but the claimant fits", keysOf(victims))
	}
	if reason := h.oracle(root, victims).Refuses(path, claim.Demand); reason != "" {
		t.Fatalf("%v are evicted, but then the claimant is refused: %s", keysOf(victims), reason)
	}
	if !isLawful(h, root, claim, victims) {
		t.Fatalf("%v are evicted against the law", keysOf(victims))
	}
	for i, v := range victims {
		others := slices.Delete(slices.Clone(victims), i, i+1)
		if isLawful(h, root, claim, others) && h.oracle(root, others).Refuses(path, claim.Demand) == "" {
			t.Fatalf("%v are evicted, but %s could be spared", keysOf(victims), v.Key)
		}
		switch {
		case !slices.Contains(candidates, v.Candidate):
			t.Fatalf("%s is evicted, which is no candidate", v.Key)
		case !v.Reclaimed && (v.Group.Path() != path || claim.Preempts == nil || !claim.Preempts(v.Candidate)):
			t.Fatalf("%s of priority %d is preempted for a unit of priority %d", v.Key, v.Priority, priority)
		case v.Reclaimed:
			reclaimed++
			expectReclaimable(t, h, root, claim, victims, i)
		}
	}
	return found, reclaimed
}

// expectReclaimable verifies that the victim with the index can be reclaimed after those before it were taken.
func expectReclaimable(t *rapid.T, h *hall, root tree.Node, claim preemption.Claim, victims []preemption.Victim, i int) {
	v, path := victims[i], claim.Group.Path()
	var own []preemption.Victim
	for _, other := range victims {
		if !other.Reclaimed {
			own = append(own, other)
		}
	}
	if !claim.Reclaims || !mayReclaim(h, root, claim, own) {
		t.Fatalf("%s is reclaimed for a unit that is not within the guarantee of %s, or lacks something else", v.Key, path)
	}
	o := h.oracle(root, append(own, slices.DeleteFunc(slices.Clone(victims[:i]), func(v preemption.Victim) bool { return !v.Reclaimed })...))
	for _, place := range o.Lacking(path, claim.Demand) {
		above := o.HasBorrowed(v.Group.Path(), path, place.Resource)
		if used := v.Charge.Total(); above && slices.Contains(oracle.Chain(v.Group.Path()), place.Path) {
			if amount, _ := used.Get(h.names.ID(place.Resource)); amount > 0 {
				return
			}
		}
	}
	t.Fatalf("%s is reclaimed from %s, which is not above its guarantee of anything that is lacking", v.Key, v.Group.Path())
}

// mayReclaim reports whether the claimant, without the evicted units of its queue, is within the guarantee of its group
// and lacks only what that names.
func mayReclaim(h *hall, root tree.Node, claim preemption.Claim, own []preemption.Victim) bool {
	o, path := h.oracle(root, own), claim.Group.Path()
	for _, place := range o.Lacking(path, claim.Demand) {
		if _, named := o.Guarantee(path, place.Resource); !named {
			return false
		}
	}
	return o.Within(oracle.Branch{Path: path}, claim.Demand)
}

// isLawful reports whether the claimant's own guarantee allows the victims to be evicted for it.
func isLawful(h *hall, root tree.Node, claim preemption.Claim, victims []preemption.Victim) bool {
	isReclaimed := func(v preemption.Victim) bool { return v.Reclaimed }
	own := slices.DeleteFunc(slices.Clone(victims), isReclaimed)
	if len(own) < len(victims) && !mayReclaim(h, root, claim, own) {
		return false
	}
	before, after, path := h.oracle(root, nil), h.oracle(root, own), claim.Group.Path()
	borrows := false
	for _, name := range []string{"cpu", "gpu"} {
		_, named := before.Guarantee(path, name)
		request, _ := claim.Demand.Requests.Get(h.names.ID(name))
		borrows = borrows || request > 0 && !named
	}
	if !borrows && after.Within(oracle.Branch{Path: path}, claim.Demand) {
		return true
	}
	for _, name := range []string{"cpu", "gpu"} {
		due, named := before.Guarantee(path, name)
		if !named {
			continue
		}
		request, _ := claim.Demand.Requests.Get(h.names.ID(name))
		with := after.Used(path, name)
		with.Add(with, big.NewInt(request))
		if was := before.Used(path, name); with.Cmp(due) < 0 && with.Cmp(was) < 0 {
			return false // it uses less of its guarantee
		}
	}
	return true
}

func keysOf(victims []preemption.Victim) (keys []string) {
	for _, v := range victims {
		keys = append(keys, v.Key)
	}
	return keys
}

// oracle returns an oracle with everything charged except the victims.
func (h *hall) oracle(root tree.Node, victims []preemption.Victim) *oracle.Tree {
	o := oracle.New(h.names, root, big.NewRat(1, 1))
	for _, c := range h.running {
		if !slices.ContainsFunc(victims, func(v preemption.Victim) bool { return v.Candidate == c }) {
			o.Charged = append(o.Charged, oracle.Charged{Path: c.Group.Path(), Charge: *c.Charge})
		}
	}
	return o
}

// runAnywhere lets a unit of any group hold quota.
func (h *hall) runAnywhere(t *rapid.T, key string) *preemption.Candidate {
	c := &preemption.Candidate{Key: key, Group: rapid.SampledFrom(h.Groups()).Draw(t, "group"),
		Priority: int32(rapid.IntRange(0, 3).Draw(t, "priority")), Charge: &quota.Charge{Demand: h.demand(drawRequests(t))}}
	h.start(c)
	return c
}

func drawRequests(t *rapid.T) (text string) {
	for _, name := range []string{"cpu", "gpu"} {
		if amount := rapid.SampledFrom([]int{0, 1, 1, 2, 3}).Draw(t, name); amount > 0 {
			text += fmt.Sprintf(" %s=%d", name, amount)
		}
	}
	return text
}

// drawTree draws two or three levels in which groups are guaranteed a part of the quota.
func drawTree(t *rapid.T) tree.Node {
	some := func(label string, least, most, odds int) (text string) {
		for _, name := range []string{"cpu", "gpu"} {
			if rapid.IntRange(0, 9).Draw(t, label) < odds {
				text += fmt.Sprintf(" %s=%d", name, rapid.IntRange(least, most).Draw(t, name))
			}
		}
		return text
	}
	group := func(name string) tree.Node { return node(name, some("min", 0, 4, 7), some("max", 6, 10, 2)) }
	inner := node("inner", some("min", 0, 6, 3), some("max", 6, 12, 3), group("a"), group("b"))
	if rapid.Bool().Draw(t, "inner is a group") {
		inner.Namespaces = []string{"inner"}
	}
	root := node("root", "", some("max", 8, 14, 9), inner, group("c"), group("d"))
	for _, n := range []*tree.Node{&root.Children[0], &root.Children[1], &root.Children[2], &root.Children[0].Children[0], &root.Children[0].Children[1]} {
		if _, _, err := tree.New(resources.NewNames(), root, tree.Options{}); err == nil {
			break
		}
		n.Min = nil // more is guaranteed than there is
	}
	return root
}
