// Package quotatree is where the simulator's trees come from: a manifest, or a
// proposal made of what the tenants of a trace have used.
//
// Invariant. What Manifest writes, Read reads as the same tree.
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

// Kind of a proposed tree.
type Kind string

// The kinds.
const (
	// Single is one leaf for all tenants.
	Single Kind = "single"
	// Elastic is a leaf for each tenant, its min in proportion to what the tenant has
	// used, its max the whole.
	Elastic Kind = "elastic"
	// Hard is the same with max = min.
	Hard Kind = "hard"
)

// Kinds lists them.
var Kinds = []Kind{Single, Elastic, Hard}

// Names of nodes that are not named after a tenant.
const (
	rootName   = "root"
	singleName = "everybody"
)

// Propose makes a tree of the kind for the tenants of the jobs, with the capacity as
// the root's max.
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
		// Every node has a name of its own.
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

// shares gives each tenant of the resource in proportion to its resource-hours,
// rounded down, and at least one where it has used any: with nothing at all its jobs
// would never run under hard quotas.
func shares(name string, capacity resource.Quantity, jobs []simulator.Job, tenants []string, into map[string]map[string]resource.Quantity) {
	used, total := map[string]*big.Int{}, new(big.Int)
	for _, j := range jobs {
		asked, err := resources.RequestValue(name, j.Requests[name])
		if err != nil {
			continue
		}
		hours := new(big.Int).Mul(big.NewInt(asked), big.NewInt(int64(j.Runs)))
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
	// What the smallest were given may be more than rounding has left.
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

// step that shares are rounded to: what reads well where there is much, a core or a
// mebibyte, and else a base unit.
func step(name string, limit int64) int64 {
	if well := min(simulator.One(name), 1<<20); limit >= 100*well {
		return well
	}
	return 1
}

func quantity(name string, value int64) resource.Quantity {
	return resource.MustParse(resources.Format(name, value))
}

// Describe says in a few words what a kind is.
func Describe(kind Kind) string {
	switch kind {
	case Single:
		return "one quota for all tenants"
	case Elastic:
		return "a quota for each tenant, min by what it used, max the whole"
	case Hard:
		return "a quota for each tenant, min by what it used, max = min"
	default:
		return fmt.Sprintf("unknown kind %q", kind)
	}
}
