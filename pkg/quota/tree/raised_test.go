package tree_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// written returns the node with the path and with what an administrator writes.
func written(n tree.Node, path string, w quota.Written, to resource.Quantity) tree.Node {
	if path == w.Quota {
		field := &n.Max
		if w.Field == "min" {
			field = &n.Min
		}
		list := maps.Clone(*field)
		if list == nil {
			list = map[string]resource.Quantity{}
		}
		list[w.Resource] = to
		*field = list
	}
	children := make([]tree.Node, len(n.Children))
	for i, child := range n.Children {
		children[i] = written(child, path+"/"+child.Name, w, to)
	}
	n.Children = children
	return n
}

// drawRaises draws raises of limits that exist, and of the guarantees of groups.
func (m *model) drawRaises(t *rapid.T) (raises []quota.Raise) {
	for range rapid.IntRange(0, 4).Draw(t, "raises") {
		space := quota.Space{Node: quota.NodeID(rapid.IntRange(0, len(m.Usage())-1).Draw(t, "node")),
			Resource: m.names.ID(rapid.SampledFrom(resourceNames).Draw(t, "resource")),
			Bound:    rapid.SampledFrom([]quota.Bound{quota.Max, quota.Max, quota.FixedMin, quota.FixedMax}).Draw(t, "bound")}
		if space.Bound == quota.FixedMin && space.Resource == m.names.ID(quota.JobsResource) {
			continue // it guarantees nothing
		}
		raises = append(raises, quota.Raise{Space: space, By: rapid.Int64Range(1, 9000).Draw(t, "by")})
	}
	return raises
}

// chargeSome charges demands and pods to groups and to what is left of groups.
func (m *model) chargeSome(t *rapid.T) {
	for range rapid.IntRange(0, 6).Draw(t, "charges") {
		switch rapid.IntRange(0, 2).Draw(t, "charge") {
		case 0:
			m.chargePods(t)
		case 1:
			m.charge(m.drawDemand(t))
		default:
			g, d := m.drawDemand(t)
			m.charge(m.Nearest(g.Path()+"/deleted"), d)
		}
	}
}

// chargedAt returns the charge as a copy of the tree identifies it.
func (m *model) chargedAt(c tree.Charged) quota.Charged {
	return quota.Charged{Path: c.Group.Path(), Remains: !slices.Contains(m.Groups(), c.Group), Charge: &c.Charge}
}

// What the charges hold of a limit adds up to the additional room of an empty tree below it.
func TestWhatChargesHoldIsTogetherWhatIsUsed(t *testing.T) {
	held := map[quota.Bound]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := drawModel(rt)
		m.chargeSome(rt)
		empty, _, err := tree.New(m.names, m.root, m.options)
		require.NoError(rt, err)
		for i, usage := range m.Usage() {
			for _, name := range resourceNames {
				for _, bound := range []quota.Bound{quota.Max, quota.FixedMin, quota.FixedMax} {
					space := quota.Space{Node: quota.NodeID(i), Resource: m.names.ID(name), Bound: bound}
					limit := empty.Room(space)
					if limit == math.MaxInt64 {
						continue
					}
					used := int64(0)
					for _, c := range m.charged {
						used += m.Holds(&quota.Refusal{Node: usage.Path, Lack: quota.Lack{Space: space}}, m.chargedAt(c))
					}
					if used != limit-m.Room(space) {
						rt.Fatalf("of %s of %s below bound %d, %d is held and %d is used", name, usage.Path, bound, used, limit-m.Room(space))
					}
					held[bound] += min(int(used), 1)
				}
			}
		}
	})
	for _, bound := range []quota.Bound{quota.Max, quota.FixedMin, quota.FixedMax} {
		if held[bound] == 0 {
			t.Errorf("nothing was held below bound %d", bound)
		}
	}
}

// A raised tree equals the one that an administrator gets by writing the same amounts, with the same charges.
func TestARaisedTreeIsTheOneThatIsWritten(t *testing.T) {
	raisedAny := false
	rapid.Check(t, func(rt *rapid.T) {
		m := drawModel(rt)
		m.chargeSome(rt)
		raises := m.drawRaises(rt)
		changes, err := m.Written(raises)
		names := m.names.Clone()
		raised, raisedErr := m.Raised(names, raises)
		if err != nil {
			if raisedErr == nil {
				rt.Fatalf("it cannot be written, and is raised: %v", err)
			}
			return
		}
		root, options := m.root, m.options
		for _, w := range changes {
			root = written(root, root.Name, w, resources.Quantity(w.Resource, w.To))
		}
		want, _, wantErr := tree.New(names, root, options)
		if wantErr != nil || raisedErr != nil {
			if wantErr == nil || raisedErr == nil || wantErr.Error() != raisedErr.Error() {
				rt.Fatalf("raised: %v, written: %v", raisedErr, wantErr)
			}
			return
		}
		raisedAny = raisedAny || len(raises) > 0
		var charged []tree.Charged
		for _, c := range m.charged {
			group := want.Nearest(c.Group.Path())
			if i := slices.Index(m.Groups(), c.Group); i >= 0 {
				group = want.Groups()[i]
			}
			group.Charge(&c.Charge)
			charged = append(charged, tree.Charged{Group: raised.Of(m.chargedAt(c)), Charge: c.Charge})
		}
		require.NoError(rt, raised.(*tree.Tree).Check(charged))
		expectSameRooms(rt, names, raised, want)
		if len(raises) == 1 { // with several raises, others can guarantee to children what one adds
			r := raises[0]
			if r.Bound == quota.FixedMin && raised.Room(r.Space) == 1<<63-1 {
				rt.Fatalf("no guarantee is written for %+v", r)
			}
			if before := m.Room(r.Space); before < 1<<62 && raised.Room(r.Space) < before+r.By {
				rt.Fatalf("%+v raises the room from %d to %d", r, before, raised.Room(r.Space))
			}
		}
		for _, c := range charged {
			c.Group.Uncharge(&c.Charge)
		}
		require.NoError(rt, raised.(*tree.Tree).Check(nil))
		m.expectExactSums(rt) // nothing of it was the original
	})
	if !raisedAny {
		t.Error("no limit was raised")
	}
}

func expectSameRooms(t *rapid.T, names *resources.Names, got, want quota.Backend) {
	for i, usage := range want.Usage() {
		for _, name := range resourceNames {
			for bound := range quota.Bounds {
				space := quota.Space{Node: quota.NodeID(i), Resource: names.ID(name), Bound: bound}
				if got.Room(space) != want.Room(space) {
					t.Fatalf("%s of %s has room %d below bound %d, want %d", name, usage.Path, got.Room(space), bound, want.Room(space))
				}
			}
		}
		if other := got.Usage()[i]; !other.Min.Equal(usage.Min) || !other.Max.Equal(usage.Max) || other.Path != usage.Path {
			t.Fatalf("the limits are %+v, want %+v", other, usage)
		}
	}
}

// A higher min is valid together with the max of the node and of its parent.
func TestAGreaterMinRaisesTheMaxThatItExceeds(t *testing.T) {
	f := build(t, "1", node("root", "", "cpu=10", withMin("cpu=4", node("a", "a", "cpu=5")), withMin("cpu=5", node("b", "b", ""))))
	got, err := f.Written([]quota.Raise{{Space: quota.Space{Node: 1, Resource: f.names.ID("cpu"), Bound: quota.FixedMin}, By: 3000}})
	want := []quota.Written{{Quota: "root/a", Field: "min", Resource: "cpu", From: 4000, To: 7000},
		{Quota: "root/a", Field: "max", Resource: "cpu", From: 5000, To: 7000}, {Quota: "root", Field: "max", Resource: "cpu", From: 10000, To: 12000}}
	if err != nil || len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%+v, %v", got, err)
	}
}

// A resource without a limit cannot be raised: a max would limit it.
func TestWhatHasNoLimitIsNotRaised(t *testing.T) {
	f := build(t, "1", node("root", "", "cpu=10", node("a", "a", "")))
	raises := []quota.Raise{{Space: quota.Space{Node: 1, Resource: f.names.ID("cpu"), Bound: quota.Max}, By: 1}}
	if _, err := f.Raised(f.names.Clone(), raises); err == nil {
		t.Error("a limit is set where none was")
	}
}
