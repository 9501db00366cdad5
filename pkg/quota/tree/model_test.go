package tree_test

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var resourceNames = []string{"cpu", "memory", "nvidia.com/gpu", quota.JobsResource}

// drawAmounts are small mostly, so that limits are met, and sometimes great.
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

// drawNode draws a node and those below it, to a depth of nine. Every node lists
// the namespace of its own name, and some the star.
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

func withoutMin(n tree.Node) tree.Node {
	n.Min = nil
	n.Children = slices.Clone(n.Children)
	for i, child := range n.Children {
		n.Children[i] = withoutMin(child)
	}
	return n
}

// model is a tree next to the simplest arithmetic with the same result.
type model struct {
	*tree.Tree
	names *resources.Names
	rate  *big.Rat
	// max and min of each node, by path.
	max, min map[string]map[string]resource.Quantity
	charged  []tree.Charged
	// pausing: the tree pauses borrowing; paused are the nodes and resources where
	// it is, by path and name.
	pausing bool
	paused  map[[2]string]bool
}

func drawModel(t *rapid.T) *model {
	root := drawNode(t, 1, new(int))
	text := rapid.SampledFrom([]string{"1", "1.2", "0.5", "1.333333333", "0.000000001", "3"}).Draw(t, "oversell")
	rate, err := resources.ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{names: resources.NewNames(), max: map[string]map[string]resource.Quantity{},
		min: map[string]map[string]resource.Quantity{}, pausing: rapid.Bool().Draw(t, "pausing"), paused: map[[2]string]bool{}}
	options := tree.Options{Oversell: rate, PauseBorrowing: m.pausing}
	m.rate, _ = new(big.Rat).SetString(text)
	m.Tree, _, err = tree.New(m.names, root, options)
	if err != nil {
		root = withoutMin(root)
		m.Tree, _, err = tree.New(m.names, root, options)
	}
	if err != nil {
		t.Fatalf("without min nothing is invalid: %v", err)
	}
	m.keep(root, "")
	m.drawPauses(t)
	return m
}

func (m *model) keep(n tree.Node, above string) {
	path := strings.TrimPrefix(above+"/"+n.Name, "/")
	m.max[path], m.min[path] = n.Max, n.Min
	for _, child := range n.Children {
		m.keep(child, path)
	}
}

// drawPauses has borrowing paused here and there, as for somebody who waits.
func (m *model) drawPauses(t *rapid.T) {
	if !m.pausing {
		return
	}
	for i, usage := range m.Usage() {
		for _, name := range resourceNames {
			if rapid.IntRange(0, 5).Draw(t, "paused") == 0 {
				m.Pause(quota.NodeID(i), m.names.ID(name))
				m.paused[[2]string{usage.Path, name}] = true
			}
		}
	}
}

// chain of paths from the group's up to the root's.
func chain(path string) []string {
	paths := []string{path}
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			paths = append(paths, path[:i])
		}
	}
	return paths
}

// limit of a resource at a node: floor(floor(max) x rate), if max names it.
func (m *model) limit(path, name string) (*big.Int, bool) {
	q, named := m.max[path][name]
	if !named {
		return nil, false
	}
	product := new(big.Rat).SetInt(baseUnits(name, q))
	product.Mul(product, m.rate)
	return new(big.Int).Div(product.Num(), product.Denom()), true
}

// guarantee of a resource at a node: floor(min), if min names it.
func (m *model) guarantee(path, name string) (*big.Int, bool) {
	q, named := m.min[path][name]
	if !named {
		return nil, false
	}
	return baseUnits(name, q), true
}

func baseUnits(name string, q resource.Quantity) *big.Int {
	units, _ := new(big.Rat).SetString(q.AsDec().String())
	if name == "cpu" {
		units.Mul(units, big.NewRat(1000, 1))
	}
	return new(big.Int).Div(units.Num(), units.Denom())
}

// used of a resource at a node, added up from what is charged.
func (m *model) used(path, name string) *big.Int {
	return m.usedBy(path, name, func(tree.Charged) bool { return true })
}

func (m *model) usedBy(path, name string, counts func(tree.Charged) bool) *big.Int {
	total := new(big.Int)
	for _, c := range m.charged {
		if counts(c) && slices.Contains(chain(c.Group.Path()), path) {
			total.Add(total, big.NewInt(c.Of(m.names.ID(name))))
		}
	}
	return total
}

// verdict is the reason that Fits has to give, or none.
func (m *model) verdict(g quota.Group, d quota.Demand) wellknown.Reason {
	if m.lacking(g, d, true) != "" {
		return wellknown.ReasonExceedsMaxQuota
	}
	own, above := m.lacking(g, d, false), wellknown.Reason("")
	if own == "" || !m.lacksAt(g.Path(), d) {
		own, above = "", own
	}
	fixed := m.beyondMin(g, d)
	switch {
	case fixed == wellknown.ReasonExceedsMinQuota:
		return fixed
	case own != "":
		return own
	case fixed != "":
		return fixed
	case m.pausing && m.borrowsPaused(g, d) && !m.owed(g, d):
		return wellknown.ReasonBorrowingPaused
	default:
		return above
	}
}

// lacking is the reason of the nearest node that has no room, if any; with alone,
// where the request has none even with nothing used.
func (m *model) lacking(g quota.Group, d quota.Demand, alone bool) wellknown.Reason {
	for _, path := range chain(g.Path()) {
		for _, name := range slices.Sorted(slices.Values(resourceNames)) {
			requested, _ := d.Requests.Get(m.names.ID(name))
			limit, named := m.limit(path, name)
			if requested == 0 || !named {
				continue
			}
			sum := big.NewInt(requested)
			if !alone {
				sum.Add(sum, m.used(path, name))
			}
			if sum.Cmp(limit) <= 0 {
				continue
			}
			if name == quota.JobsResource {
				return wellknown.ReasonMaxJobs
			}
			return wellknown.ReasonQuotaExceeded
		}
	}
	return ""
}

func (m *model) lacksAt(path string, d quota.Demand) bool {
	for _, a := range d.Requests {
		name := m.names.Name(a.ID)
		limit, named := m.limit(path, name)
		if sum := m.used(path, name); named && sum.Add(sum, big.NewInt(a.Value)).Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// beyondMin is why a demand that is not preemptible is not within its group's min.
func (m *model) beyondMin(g quota.Group, d quota.Demand) wellknown.Reason {
	if d.Preemptible {
		return ""
	}
	verdict, guaranteed, asks := wellknown.Reason(""), false, false
	for _, a := range d.Requests {
		name := m.names.Name(a.ID)
		asks = asks || name != quota.JobsResource
		least, named := m.guarantee(g.Path(), name)
		if !named {
			continue
		}
		guaranteed = guaranteed || name != quota.JobsResource
		if big.NewInt(a.Value).Cmp(least) > 0 {
			return wellknown.ReasonExceedsMinQuota
		}
		fixed := m.usedBy(g.Path(), name, func(c tree.Charged) bool { return c.Group.Path() == g.Path() && !c.Demand.Preemptible })
		if fixed.Add(fixed, big.NewInt(a.Value)).Cmp(least) > 0 {
			verdict = wellknown.ReasonQuotaExceeded
		}
	}
	if asks && !guaranteed {
		return wellknown.ReasonExceedsMinQuota
	}
	if !asks && !guaranteed {
		return ""
	}
	return verdict
}

// owed reports whether the group stays within min with the demand.
func (m *model) owed(g quota.Group, d quota.Demand) bool {
	guaranteed := false
	for _, a := range d.Requests {
		name := m.names.Name(a.ID)
		least, named := m.guarantee(g.Path(), name)
		if !named {
			continue
		}
		if sum := m.used(g.Path(), name); sum.Add(sum, big.NewInt(a.Value)).Cmp(least) > 0 {
			return false
		}
		guaranteed = guaranteed || name != quota.JobsResource
	}
	return guaranteed
}

// borrowsPaused reports whether the group would be above min in a resource of which
// borrowing is paused at one of its nodes.
func (m *model) borrowsPaused(g quota.Group, d quota.Demand) bool {
	for _, path := range chain(g.Path()) {
		for _, a := range d.Requests {
			name := m.names.Name(a.ID)
			least, named := m.guarantee(g.Path(), name)
			sum := m.used(g.Path(), name)
			above := !named || sum.Add(sum, big.NewInt(a.Value)).Cmp(least) > 0
			if above && m.paused[[2]string{path, name}] {
				return true
			}
		}
	}
	return false
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
	if err != nil {
		t.Fatal(err)
	}
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
}

func (m *model) release(i int) {
	c := m.charged[i]
	c.Group.Release(&c.Charge)
	m.charged = slices.Delete(m.charged, i, i+1)
}

// expectExactSums compares what the tree counts with the sum of what is charged.
func (m *model) expectExactSums(t *rapid.T) {
	if err := m.Check(m.charged); err != nil {
		t.Fatal(err)
	}
	for _, usage := range m.Usage() {
		for _, name := range resourceNames {
			got, _ := usage.Used.Get(m.names.ID(name))
			if name == quota.JobsResource {
				got = usage.Jobs
			}
			if want := m.used(usage.Path, name); want.Cmp(big.NewInt(got)) != 0 {
				t.Fatalf("%s of %s used, the sum is %s", usage.Path, name, want)
			}
		}
	}
}

// expectWithinLimits of what the demand, which fitted before it was charged, requests.
func (m *model) expectWithinLimits(t *rapid.T, g quota.Group, d quota.Demand) {
	for _, path := range chain(g.Path()) {
		for _, a := range d.Requests {
			name := m.names.Name(a.ID)
			if limit, named := m.limit(path, name); named && m.used(path, name).Cmp(limit) > 0 {
				t.Fatalf("%s of %s used at %s, the limit is %s", m.used(path, name), name, path, limit)
			}
		}
	}
}
