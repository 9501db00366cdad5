package tree_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// amounts reads "cpu=4 memory=4Gi".
func amounts(text string) map[string]resource.Quantity {
	list := map[string]resource.Quantity{}
	for _, field := range strings.Fields(text) {
		name, quantity, _ := strings.Cut(field, "=")
		list[name] = resource.MustParse(quantity)
	}
	return list
}

// node returns a node with a max and with namespaces as in "a b".
func node(name, namespaces, limits string, children ...tree.Node) tree.Node {
	return tree.Node{Name: name, Namespaces: strings.Fields(namespaces), Max: amounts(limits), Children: children}
}

// withMin gives the node a min.
func withMin(guaranteed string, n tree.Node) tree.Node {
	n.Min = amounts(guaranteed)
	return n
}

// fixture is a tree and the names that its demands are built with.
type fixture struct {
	*tree.Tree
	t     *testing.T
	names *resources.Names
}

func build(t *testing.T, oversell string, root tree.Node) fixture {
	t.Helper()
	rate, err := resources.ParseRate(oversell)
	require.NoError(t, err)
	names := resources.NewNames()
	built, _, err := tree.New(names, root, tree.Options{Oversell: rate})
	require.NoError(t, err)
	return fixture{Tree: built, t: t, names: names}
}

// requests are the amounts that a unit requests.
func (f fixture) requests(text string) resources.Vector {
	f.t.Helper()
	requests, err := resources.Request(f.names, amounts(text))
	require.NoError(f.t, err)
	return requests
}

// demand returns the demand of one unit that requests the amounts.
func (f fixture) demand(text string) quota.Demand {
	f.t.Helper()
	return quota.Demand{Requests: f.requests(text).With(f.names.ID(quota.JobsResource), 1), Preemptible: true}
}

// group returns the group of the namespace.
func (f fixture) group(namespace string) quota.Group {
	f.t.Helper()
	g, refusal := f.Place(namespace, "")
	if refusal != nil {
		f.t.Fatal(refusal.Message())
	}
	return g
}

// fits returns the reason, node and resource of the refusal; "" if the demand fits.
func fits(g quota.Group, d quota.Demand) string {
	refusal := g.Fits(d)
	if refusal == nil {
		return ""
	}
	return strings.TrimSpace(string(refusal.Reason) + " " + refusal.Node + " " + refusal.Resource)
}

func (f fixture) expect(g quota.Group, d quota.Demand, want string) {
	f.t.Helper()
	if got := fits(g, d); got != want {
		f.t.Errorf("Fits in %s: %q, want %q", g.Path(), got, want)
	}
}

// used returns how much of a resource is used at the node with the path.
func (f fixture) used(path, name string) int64 {
	f.t.Helper()
	for _, usage := range f.Usage() {
		if usage.Path == path {
			used, _ := usage.Used.Get(f.names.ID(name))
			return used
		}
	}
	f.t.Fatalf("no node %s", path)
	return 0
}
