package tree_test

import (
	"math/big"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/oracle"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

var resourceNames = []string{"cpu", "memory", "nvidia.com/gpu", quota.JobsResource}

// drawAmounts draws mostly small amounts, so that limits are met, and sometimes large ones.
func drawAmounts(t *rapid.T, label string) map[string]resource.Quantity {
	list := map[string]resource.Quantity{}
	for _, name := range resourceNames {
		switch rapid.IntRange(0, 9).Draw(t, label) {
		case 0, 1, 2, 3:
		case 4:
			list[name] = *resource.NewQuantity(0, resource.DecimalSI)
		case 5:
			list[name] = *resource.NewQuantity(rapid.Int64Range(1<<31, 1<<43).Draw(t, "great"), resource.DecimalSI)
		default:
			list[name] = *resource.NewMilliQuantity(rapid.Int64Range(1, 20000).Draw(t, "small"), resource.DecimalSI)
		}
	}
	return list
}

// drawNode draws a node and those below it, to a depth of nine. Every node lists the namespace of its own name, and
// some also list "*".
func drawNode(t *rapid.T, depth int, count *int) tree.Node {
	*count++
	name := "n" + strconv.Itoa(*count)
	n := tree.Node{Name: name, Namespaces: []string{name}, Max: drawAmounts(t, "max"), Min: drawAmounts(t, "min")}
	children := rapid.IntRange(0, 3).Draw(t, "children")
	for range min(children, 9-depth) {
		if *count < 40 {
			n.Children = append(n.Children, drawNode(t, depth+1, count))
		}
	}
	return n
}

// drawBorrowers draws a tree in which only the root is limited and groups are guaranteed parts of it, so that they lend
// and borrow.
func drawBorrowers(t *rapid.T) tree.Node {
	some := func(most int) map[string]resource.Quantity {
		list := map[string]resource.Quantity{}
		for _, name := range resourceNames[:3] {
			if rapid.IntRange(0, 2).Draw(t, "named") > 0 {
				list[name] = *resource.NewQuantity(int64(rapid.IntRange(1, most).Draw(t, "amount")), resource.DecimalSI)
			}
		}
		return list
	}
	group := func(name string) tree.Node {
		return tree.Node{Name: name, Namespaces: []string{name}, Min: some(4)}
	}
	inner := group("inner")
	inner.Children = []tree.Node{group("a"), group("b")}
	root := tree.Node{Name: "root", Max: some(12), Children: []tree.Node{inner, group("c"), group("d")}}
	return root
}

func withoutMinOf(n tree.Node, drops func(tree.Node) bool) tree.Node {
	if drops(n) {
		n.Min = nil
	}
	n.Children = slices.Clone(n.Children)
	for i, child := range n.Children {
		n.Children[i] = withoutMinOf(child, drops)
	}
	return n
}

// model is a tree and an oracle with the same charges.
type model struct {
	*tree.Tree
	oracle *oracle.Tree
	names  *resources.Names
	// root and options are what the tree was built from.
	root    tree.Node
	options tree.Options
	// charged is what is charged, in the order of oracle.Charged.
	charged []tree.Charged
}

func drawModel(t *rapid.T) *model {
	root := drawNode(t, 1, new(int))
	if rapid.Bool().Draw(t, "borrowers") {
		root = drawBorrowers(t)
	}
	text := rapid.SampledFrom([]string{"1", "1.2", "0.5", "1.333333333", "0.000000001", "3"}).Draw(t, "oversell")
	rate, err := resources.ParseRate(text)
	require.NoError(t, err)
	m := &model{names: resources.NewNames()}
	options := tree.Options{Oversell: rate, PauseBorrowing: rapid.Bool().Draw(t, "reserving")}
	m.Tree, _, err = tree.New(m.names, root, options)
	if err != nil {
		root = withoutMinOf(root, func(n tree.Node) bool { return n.Children != nil })
		m.Tree, _, err = tree.New(m.names, root, options)
	}
	if err != nil {
		root = withoutMinOf(root, func(tree.Node) bool { return true })
		m.Tree, _, err = tree.New(m.names, root, options)
	}
	if err != nil {
		t.Fatalf("without min nothing is invalid: %v", err)
	}
	ratio, _ := new(big.Rat).SetString(text)
	m.oracle = oracle.New(m.names, root, ratio)
	m.oracle.Reserving = options.PauseBorrowing
	m.root, m.options = root, options
	m.drawReserved(t)
	return m
}

// drawReserved reserves room here and there, as for waiting units.
func (m *model) drawReserved(t *rapid.T) {
	if !m.oracle.Reserving {
		return
	}
	for i, usage := range m.Usage() {
		for _, name := range resourceNames[:3] {
			if rapid.IntRange(0, 5).Draw(t, "reserved") == 0 {
				amount := rapid.Int64Range(1, 10000).Draw(t, "amount")
				m.Reserve(quota.NodeID(i), m.names.ID(name), amount)
				m.oracle.Reserved[oracle.Place{Path: usage.Path, Resource: name}] = amount
			}
		}
	}
}

func (m *model) hasRoom(l quota.Lack) bool { return m.Room(l.Space) >= l.Amount }

// expectOwed compares what the group is owed, and what must be reserved for it, with the oracle.
func (m *model) expectOwed(t *rapid.T, g quota.Group, d quota.Demand, refusal *quota.Refusal) {
	paths := oracle.Chain(g.Path())
	for i, node := range g.Nodes() {
		for _, own := range []bool{false, true} {
			if own && i > 0 {
				continue
			}
			want := m.oracle.IsOwed(g.Path(), d, oracle.Branch{Path: paths[i], Own: own})
			if got := g.Owed(d, quota.Branch{Node: node, Own: own}); got != want {
				t.Fatalf("in %s against the siblings of %s (own %t): owed is %t", g.Path(), paths[i], own, got)
			}
			want2 := m.oracle.ShareOf(oracle.Branch{Path: paths[i], Own: own}, d)
			got := m.Share(quota.Branch{Node: node, Own: own}, d)
			if got.Kind != want2.Kind || got.Kind != quota.OfNothing && big.NewRat(got.Used, got.Due).Cmp(want2.Part) != 0 {
				t.Fatalf("share of %s (own %t): %+v, want %+v", paths[i], own, got, want2)
			}
		}
	}
	if refusal == nil {
		return
	}
	want := []oracle.Place(nil)
	if m.oracle.Reserving && refusal.Lack.Bound == quota.Max && !refusal.Final() {
		want = m.oracle.Claims(g.Path(), d)
	}
	var got []oracle.Place
	for _, lack := range refusal.Owed {
		got = append(got, oracle.Place{Path: paths[slices.Index(g.Nodes(), lack.Node)], Resource: m.names.Name(lack.Resource)})
	}
	if !slices.Equal(got, want) {
		t.Fatalf("in %s: to be reserved are %v, want %v", g.Path(), got, want)
	}
}

func (m *model) drawDemand(t *rapid.T) (quota.Group, quota.Demand) {
	list := map[string]resource.Quantity{}
	for _, name := range resourceNames[:3] {
		switch rapid.IntRange(0, 9).Draw(t, "asks") {
		case 0, 1, 2:
		case 3:
			list[name] = *resource.NewQuantity(rapid.Int64Range(1<<30, 1<<42).Draw(t, "great"), resource.DecimalSI)
		default:
			list[name] = *resource.NewMilliQuantity(rapid.Int64Range(1, 5000).Draw(t, "small"), resource.DecimalSI)
		}
	}
	requests, err := resources.Request(m.names, list)
	require.NoError(t, err)
	d := quota.Demand{Requests: requests.With(m.names.ID(quota.JobsResource), 1), Preemptible: rapid.Bool().Draw(t, "preemptible")}
	return rapid.SampledFrom(m.Groups()).Draw(t, "group"), d
}

func (m *model) charge(g quota.Group, d quota.Demand) { m.chargeAll(g, quota.Charge{Demand: d}) }

// chargePods charges a demand together with pods, or pods alone.
func (m *model) chargePods(t *rapid.T) {
	g, d := m.drawDemand(t)
	_, pods := m.drawDemand(t)
	c := quota.Charge{Demand: d}
	for _, a := range pods.Requests {
		if a.ID != m.names.ID(quota.JobsResource) {
			c.Pods = append(c.Pods, a)
		}
	}
	if rapid.Bool().Draw(t, "without a demand") {
		c.Demand.Requests = nil
		c.Unqueued = rapid.Bool().Draw(t, "unqueued")
	}
	m.chargeAll(g, c)
}

func (m *model) chargeAll(g quota.Group, c quota.Charge) {
	g.Charge(&c)
	m.charged = append(m.charged, tree.Charged{Group: g, Charge: c})
	m.oracle.Charged = append(m.oracle.Charged, oracle.Charged{Path: g.Path(), Charge: c})
}

func (m *model) release(i int) {
	c := m.charged[i]
	c.Group.Uncharge(&c.Charge)
	m.charged = slices.Delete(m.charged, i, i+1)
	m.oracle.Charged = slices.Delete(m.oracle.Charged, i, i+1)
}

// expectExactSums compares the sums of the tree with the sums of what is charged.
func (m *model) expectExactSums(t *rapid.T) {
	require.NoError(t, m.Check(m.charged))
	for _, usage := range m.Usage() {
		for _, name := range resourceNames {
			got, _ := usage.Used.Get(m.names.ID(name))
			if name == quota.JobsResource {
				got = usage.Jobs
			}
			if want := m.oracle.Used(usage.Path, name); want.Cmp(big.NewInt(got)) != 0 {
				t.Fatalf("%s of %s used, the sum is %s", usage.Path, name, want)
			}
		}
	}
}

// expectWithinLimits expects that a demand that did fit exceeds no limit after it was charged.
func (m *model) expectWithinLimits(t *rapid.T, g quota.Group, d quota.Demand) {
	for _, path := range oracle.Chain(g.Path()) {
		for _, a := range d.Requests {
			name := m.names.Name(a.ID)
			if limit, named := m.oracle.Limit(path, name); named && m.oracle.Used(path, name).Cmp(limit) > 0 {
				t.Fatalf("%s of %s used at %s, the limit is %s", m.oracle.Used(path, name), name, path, limit)
			}
		}
	}
}
