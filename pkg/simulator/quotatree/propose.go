// Package quotatree provides the quota trees of the simulator: from a manifest, or proposed
// from the use of the tenants of a trace.
//
// Invariant. Read returns the same tree that Manifest has written.
package quotatree

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/simulator"
)

// Kind is the kind of a proposed tree.
type Kind string

// The kinds.
const (
	// Single is one leaf for all tenants.
	Single Kind = "single"
	// Elastic is a leaf per tenant, with a min in proportion to the use of the tenant and
	// the complete capacity as max.
	Elastic Kind = "elastic"
	// Hard is like Elastic, but with max = min.
	Hard Kind = "hard"
)

// Kinds lists all kinds.
var Kinds = []Kind{Single, Elastic, Hard}

// Names of nodes that are not named after a tenant.
const (
	rootName   = "root"
	singleName = "everybody"
)

// Propose returns a tree of the kind for the tenants of the jobs, with the capacity as the
// max of the root.
func Propose(kind Kind, jobs []simulator.Job, capacity map[string]resource.Quantity) tree.Node {
	root := tree.Node{Name: rootName, Max: capacity}
	tenants := map[string]bool{}
	for _, j := range jobs {
		tenants[j.Namespace] = true
	}
	names := slices.Sorted(maps.Keys(tenants))
	if kind == Single {
		root.Children = []tree.Node{{Name: singleName, Namespaces: names, Max: capacity}}
		return root
	}
	mins := map[string]map[string]resource.Quantity{}
	for _, name := range names {
		mins[name] = map[string]resource.Quantity{}
	}
	for _, r := range slices.Sorted(maps.Keys(capacity)) {
		shares(r, capacity[r], jobs, names, mins)
	}
	for _, name := range names {
		leaf := tree.Node{Name: name, Namespaces: []string{name}, Min: mins[name], Max: capacity}
		// Node names must be unique.
		if name == rootName {
			leaf.Name = "namespace-" + name
		}
		if kind == Hard {
			leaf.Max = leaf.Min
		}
		root.Children = append(root.Children, leaf)
	}
	return root
}

// shares divides the resource between the tenants in proportion to their resource-hours, rounded down. A tenant that
// has used any of it gets at least one step, because without a share its jobs would never run under hard quotas.
func shares(name string, capacity resource.Quantity, jobs []simulator.Job, tenants []string, into map[string]map[string]resource.Quantity) {
	used, total := map[string]*big.Int{}, new(big.Int)
	for _, j := range jobs {
		requested, err := resources.RequestValue(name, j.Requests[name])
		if err != nil {
			continue
		}
		hours := new(big.Int).Mul(big.NewInt(requested), big.NewInt(int64(j.Runs)))
		total.Add(total, hours)
		if used[j.Namespace] == nil {
			used[j.Namespace] = new(big.Int)
		}
		used[j.Namespace].Add(used[j.Namespace], hours)
	}
	limit, err := resources.LimitValue(name, capacity)
	if err != nil || total.Sign() == 0 {
		return
	}
	unit := step(name, limit)
	left := limit
	values := map[string]int64{}
	for _, t := range tenants {
		if used[t] == nil || used[t].Sign() == 0 {
			continue
		}
		share := new(big.Int).Mul(big.NewInt(limit), used[t])
		value := share.Quo(share, total).Int64()
		values[t] = max(value-value%unit, min(unit, limit))
		left -= values[t]
	}
	// The minimum shares may exceed what rounding has left.
	for left < 0 {
		greatest := slices.MaxFunc(slices.Sorted(maps.Keys(values)), func(a, b string) int { return cmp.Compare(values[a], values[b]) })
		taken := min(-left, values[greatest])
		values[greatest] -= taken
		left += taken
	}
	for t, value := range values {
		into[t][name] = quantity(name, value)
	}
}

// step returns the amount that shares are rounded to: a core or a mebibyte for large amounts, otherwise a base unit.
func step(name string, limit int64) int64 {
	if well := min(simulator.One(name), 1<<20); limit >= 100*well {
		return well
	}
	return 1
}

func quantity(name string, value int64) resource.Quantity {
	return resource.MustParse(resources.Format(name, value))
}

// WithMins returns the tree with a percentage of each min, rounded down.
func WithMins(n tree.Node, percent int) tree.Node {
	if percent == 100 {
		return n
	}
	n.Min, n.Children = maps.Clone(n.Min), slices.Clone(n.Children)
	for name, q := range n.Min {
		if value, err := resources.LimitValue(name, q); err == nil {
			n.Min[name] = quantity(name, value/100*int64(percent)+value%100*int64(percent)/100)
		}
	}
	for i := range n.Children {
		n.Children[i] = WithMins(n.Children[i], percent)
	}
	return n
}

// Describe returns a short description of a kind.
func Describe(kind Kind) string {
	switch kind {
	case Single:
		return "one quota for all tenants"
	case Elastic:
		return "one quota per tenant, min in proportion to its use, max = complete capacity"
	case Hard:
		return "one quota per tenant, min in proportion to its use, max = min"
	default:
		return fmt.Sprintf("unknown kind %q", kind)
	}
}
