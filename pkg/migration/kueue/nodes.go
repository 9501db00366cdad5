package kueue

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// pair is a resource of a flavor.
type pair struct{ flavor, resource string }

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.flavor, b.flavor))
}

// quotas are the quotas of a node for a pair, in base units. Without a limit, borrow and lend are nil.
type quotas struct {
	nominal      int64
	borrow, lend *int64
}

// node is a ClusterQueue or a Cohort.
type node struct {
	// object names the node in findings.
	object string
	// name is the name of the quota node, which is unique in the tree.
	name   string
	parent *node
	// children are sorted by their name in the tree.
	children []*node
	// queue is the ClusterQueue of a leaf.
	queue *clusterQueue
	own   map[pair]quotas

	// subtree is what Kueue counts as the quota of the node: its own and what its children lend. local is the part of it
	// that the node does not lend. hidden is what the descendants do not lend, and is not part of subtree.
	subtree, local, hidden map[pair]resources.Sum
	// reach is the most that can be in use at and below the node while all others are idle.
	reach map[pair]resources.Sum
}

// addUp computes the quotas of the node and all nodes below it, from the leaves up.
func (n *node) addUp() {
	n.subtree, n.local, n.hidden = map[pair]resources.Sum{}, map[pair]resources.Sum{}, map[pair]resources.Sum{}
	for p, q := range n.own {
		n.subtree[p] = resources.Sum{}.Plus(q.nominal)
	}
	for _, child := range n.children {
		child.addUp()
		for p, amount := range child.subtree {
			n.subtree[p] = n.subtree[p].Add(amount.Sub(child.local[p]))
			n.hidden[p] = n.hidden[p].Add(child.local[p]).Add(child.hidden[p])
		}
	}
	for p, amount := range n.subtree {
		if lend := n.own[p].lend; lend != nil && n.parent != nil {
			n.local[p] = slices.MaxFunc([]resources.Sum{{}, amount.Minus(*lend)}, resources.Sum.Compare)
		}
	}
}

// reachDown computes the reach of the node and all nodes below it, from the root down. above is how much of each pair
// Kueue would give to the parent of the node; nil if there is no parent.
func (n *node) reachDown(above map[pair]resources.Sum) {
	n.reach = map[pair]resources.Sum{}
	available := map[pair]resources.Sum{}
	for p, amount := range n.subtree {
		given := amount
		if n.parent != nil {
			given = n.local[p].Add(above[p])
			if borrow := n.own[p].borrow; borrow != nil {
				given = slices.MinFunc([]resources.Sum{given, amount.Plus(*borrow)}, resources.Sum.Compare)
			}
		}
		available[p] = given
		n.reach[p] = given.Add(n.hidden[p])
	}
	for _, child := range n.children {
		child.reachDown(available)
	}
}

// total returns what the node and all nodes below it have of a pair, lent or not.
func (n *node) total(p pair) resources.Sum { return n.subtree[p].Add(n.hidden[p]) }

// pairs returns the pairs of the node, sorted by resource.
func (n *node) pairs() []pair {
	return slices.SortedFunc(maps.Keys(n.subtree), comparePairs)
}

// perResource sums amounts over the flavors of a resource.
func (n *node) perResource(amount func(pair) resources.Sum) map[string]resources.Sum {
	sums := map[string]resources.Sum{}
	for _, p := range n.pairs() {
		sums[p.resource] = sums[p.resource].Add(amount(p))
	}
	return sums
}

// readQuotas reads the quotas of an object. Amounts of the resource pods are left out, and reported by the caller.
func readQuotas(d migration.Document, spec quotaSpec, faults *migration.Faults) map[pair]quotas {
	own := map[pair]quotas{}
	for _, group := range spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				amount := func(field string, text *migration.Text) *int64 {
					if text == nil {
						return nil
					}
					value, err := readAmount(r.Name, string(*text))
					if err != nil {
						faults.Add(d, "flavor %q: %s: %v", flavor.Name, field, err)
					}
					return &value
				}
				p := pair{flavor.Name, r.Name}
				if _, twice := own[p]; twice {
					faults.Add(d, "flavor %q lists %s twice; remove one entry", flavor.Name, r.Name)
				}
				own[p] = quotas{nominal: *amount("nominalQuota", &r.NominalQuota), borrow: amount("borrowingLimit", r.BorrowingLimit),
					lend: amount("lendingLimit", r.LendingLimit)}
			}
		}
	}
	return own
}

// readAmount returns a quantity in base units.
func readAmount(resource, text string) (int64, error) {
	q, err := resources.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", resource, err)
	}
	value, err := resources.LimitValue(resource, q)
	if err != nil {
		return 0, err
	}
	if value == math.MaxInt64 {
		return 0, fmt.Errorf("%s: %q exceeds the largest amount; if it means no limit, write the amount that the cluster has", resource, text)
	}
	return value, nil
}
