// Package oracle computes what a quota tree must decide, with the simplest arithmetic. Tests compare the tree with it.
// It calls none of the code under test, and adds everything up again each time.
package oracle

import (
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Tree is a valid quota tree and what is charged to it. Nodes are identified by their paths.
type Tree struct {
	names *resources.Names
	rate  *big.Rat
	// max, min and children are by path.
	max, min map[string]map[string]resource.Quantity
	children map[string][]string
	// Charged is what is charged.
	Charged []Charged
	// Reserving is whether room can be reserved, and Reserved what is reserved.
	Reserving bool
	Reserved  map[Place]int64
}

// Place is a resource at a node.
type Place struct{ Path, Resource string }

// Charged is a charge to the group of a node. Gone is whether the unit belongs to a group that no longer exists, not to
// that one.
type Charged struct {
	Path string
	Gone bool
	quota.Charge
}

// Of is how much of a resource is charged: the greater of what was admitted and what pods request.
func (c Charged) Of(r resources.ID) int64 {
	admitted, _ := c.Demand.Requests.Get(r)
	requested, _ := c.Pods.Get(r)
	return max(admitted, requested)
}

// New returns a tree without charges. rate is the oversell rate.
func New(names *resources.Names, root tree.Node, rate *big.Rat) *Tree {
	o := &Tree{names: names, rate: rate, max: map[string]map[string]resource.Quantity{}, min: map[string]map[string]resource.Quantity{},
		children: map[string][]string{}, Reserved: map[Place]int64{}}
	o.keep(root, "")
	return o
}

func (o *Tree) keep(n tree.Node, above string) {
	path := strings.TrimPrefix(above+"/"+n.Name, "/")
	o.max[path], o.min[path] = n.Max, n.Min
	for _, child := range n.Children {
		o.children[path] = append(o.children[path], path+"/"+child.Name)
		o.keep(child, path)
	}
}

// IsInner reports whether the node has children.
func (o *Tree) IsInner(path string) bool { return o.children[path] != nil }

// Chain returns the paths from the group's up to the root's.
func Chain(path string) []string {
	paths := []string{path}
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			paths = append(paths, path[:i])
		}
	}
	return paths
}

// Limit of a resource at a node: floor(floor(max) x rate), if max names it.
func (o *Tree) Limit(path, name string) (*big.Int, bool) {
	q, named := o.max[path][name]
	if !named {
		return nil, false
	}
	product := new(big.Rat).SetInt(baseUnits(name, q))
	product.Mul(product, o.rate)
	return new(big.Int).Div(product.Num(), product.Denom()), true
}

// Guarantee of a resource at a node: the greater of its min and the sum of its children's guarantees, and at
// most its max, if any of them names it.
func (o *Tree) Guarantee(path, name string) (*big.Int, bool) {
	if name == quota.JobsResource {
		return nil, false
	}
	of, named := new(big.Int), false
	for _, child := range o.children[path] {
		if below, is := o.Guarantee(child, name); is {
			of.Add(of, below)
			named = true
		}
	}
	if limit, limited := o.max[path][name]; limited && of.Cmp(baseUnits(name, limit)) > 0 {
		of = baseUnits(name, limit)
	}
	if q, is := o.min[path][name]; is {
		named = true
		if written := baseUnits(name, q); written.Cmp(of) > 0 {
			of = written
		}
	}
	return of, named
}

// below is the sum of the guarantees of the children.
func (o *Tree) below(path, name string) *big.Int {
	sum := new(big.Int)
	for _, child := range o.children[path] {
		if of, is := o.Guarantee(child, name); is {
			sum.Add(sum, of)
		}
	}
	return sum
}

// beyond returns by how much a exceeds b; 0 if it does not.
func beyond(a, b *big.Int) *big.Int {
	if d := new(big.Int).Sub(a, b); d.Sign() > 0 {
		return d
	}
	return new(big.Int)
}

// Branch is a path with everything below it, or only the own group of an inner node.
type Branch struct {
	Path string
	Own  bool
}

// due is the guarantee of a branch, and usedIn what it uses.
func (o *Tree) due(b Branch, name string) (*big.Int, bool) {
	of, named := o.Guarantee(b.Path, name)
	if named && b.Own {
		of = beyond(of, o.below(b.Path, name))
	}
	return of, named
}

func (o *Tree) usedIn(b Branch, name string) *big.Int {
	return o.usedBy(b.Path, name, func(c Charged) bool { return !b.Own || c.Path == b.Path })
}

// BranchesAt returns the branches of a group at an ancestor. If the demand is within the guarantee of any of them,
// the group is owed it there.
func (o *Tree) BranchesAt(group string, ancestor string) []Branch {
	paths := Chain(group)
	at := slices.Index(paths, ancestor)
	if at == 0 {
		return []Branch{{ancestor, true}}
	}
	return []Branch{{paths[0], false}, {paths[at-1], false}}
}

// Within reports whether the branch with the demand stays within its guarantee.
func (o *Tree) Within(b Branch, d quota.Demand) bool {
	named := false
	for _, a := range d.Requests {
		due, is := o.due(b, o.names.Name(a.ID))
		if !is {
			continue
		}
		named = true
		if sum := o.usedIn(b, o.names.Name(a.ID)); sum.Add(sum, big.NewInt(a.Value)).Cmp(due) > 0 {
			return false
		}
	}
	return named
}

// Borrows reports whether the group borrows the amount at an ancestor: no branch with it stays within its guarantee.
func (o *Tree) Borrows(group string, ancestor string, a resources.Amount) bool {
	for _, b := range o.BranchesAt(group, ancestor) {
		due, named := o.due(b, o.names.Name(a.ID))
		if sum := o.usedIn(b, o.names.Name(a.ID)); named && sum.Add(sum, big.NewInt(a.Value)).Cmp(due) <= 0 {
			return false
		}
	}
	return true
}

// Lends reports whether a branch at or below the node uses more than its guarantee.
func (o *Tree) Lends(path, name string) bool {
	for at := range o.max {
		if at != path && !strings.HasPrefix(at, path+"/") {
			continue
		}
		branches := []Branch{}
		if at != path {
			branches = append(branches, Branch{at, false})
		}
		if o.children[at] != nil {
			branches = append(branches, Branch{at, true})
		}
		for _, b := range branches {
			due, _ := o.due(b, name)
			if due == nil {
				due = new(big.Int)
			}
			if o.usedIn(b, name).Cmp(due) > 0 {
				return true
			}
		}
	}
	return false
}

func baseUnits(name string, q resource.Quantity) *big.Int {
	units, _ := new(big.Rat).SetString(q.AsDec().String())
	if name == "cpu" {
		units.Mul(units, big.NewRat(1000, 1))
	}
	return new(big.Int).Div(units.Num(), units.Denom())
}

// Used is how much of a resource is used at a node, added up from what is charged.
func (o *Tree) Used(path, name string) *big.Int {
	return o.usedBy(path, name, func(Charged) bool { return true })
}

func (o *Tree) usedBy(path, name string, counts func(Charged) bool) *big.Int {
	total := new(big.Int)
	for _, c := range o.Charged {
		if counts(c) && slices.Contains(Chain(c.Path), path) {
			total.Add(total, big.NewInt(c.Of(o.names.ID(name))))
		}
	}
	return total
}

// IsOwed reports whether the group is owed the demand against the siblings of a branch that contains it.
func (o *Tree) IsOwed(group string, d quota.Demand, b Branch) bool {
	if b.Own && o.IsInner(b.Path) {
		return o.Within(b, d)
	}
	return o.Within(Branch{Path: group}, d) || o.Within(Branch{Path: b.Path}, d)
}

// Lacking returns the places of a group where the demand is above a limit.
func (o *Tree) Lacking(group string, d quota.Demand) (places []Place) {
	for _, path := range Chain(group) {
		for _, a := range d.Requests {
			name := o.names.Name(a.ID)
			limit, limited := o.Limit(path, name)
			if sum := o.Used(path, name); a.Value > 0 && limited && sum.Add(sum, big.NewInt(a.Value)).Cmp(limit) > 0 {
				places = append(places, Place{path, name})
			}
		}
	}
	return places
}

// Claims returns the places where others must not borrow because the group waits for the demand: all places where it
// lacks room, if everything that it lacks is guaranteed to it and borrowed by others.
func (o *Tree) Claims(group string, d quota.Demand) []Place {
	places := o.Lacking(group, d)
	for _, p := range places {
		owed := false
		for _, b := range o.BranchesAt(group, p.Path) {
			_, named := o.due(b, p.Resource)
			owed = owed || named && o.Within(b, d)
		}
		if !owed || !o.Lends(p.Path, p.Resource) || p.Path == group && !o.IsInner(group) {
			return nil
		}
	}
	return places
}

// Share is the dominant share of a branch: Kind is that of a quota.Share.
type Share struct {
	Kind int8
	Part *big.Rat
}

// Compare orders shares: the smaller one is served first.
func (s Share) Compare(other Share) int {
	if s.Kind != other.Kind {
		return int(s.Kind) - int(other.Kind)
	}
	return s.Part.Cmp(other.Part)
}

// ShareOf returns the share of the branch including the demand.
func (o *Tree) ShareOf(b Branch, d quota.Demand) Share {
	b.Own = b.Own && o.IsInner(b.Path)
	share := Share{Kind: quota.OfNothing, Part: new(big.Rat)}
	for _, a := range d.Requests {
		name := o.names.Name(a.ID)
		if a.Value <= 0 || name == quota.JobsResource {
			continue
		}
		kind := int8(quota.OfMin)
		due, named := o.due(b, name)
		if !named || due.Sign() == 0 {
			kind = quota.OfMax
			if due, named = o.Limit(b.Path, name); !named || due.Sign() == 0 {
				continue
			}
		}
		used := o.usedIn(b, name)
		part := new(big.Rat).SetFrac(used.Add(used, big.NewInt(a.Value)), due)
		if kind < share.Kind || kind == share.Kind && part.Cmp(share.Part) > 0 {
			share = Share{kind, part}
		}
	}
	return share
}

// JobsOf returns how many units of the branch hold quota.
func (o *Tree) JobsOf(b Branch) int64 {
	b.Own = b.Own && o.IsInner(b.Path)
	return o.usedIn(b, quota.JobsResource).Int64()
}

// Room returns how much is left of a limit, and whether there is one.
func (o *Tree) Room(path, name string) (*big.Int, bool) {
	limit, limited := o.Limit(path, name)
	if !limited {
		return nil, false
	}
	return limit.Sub(limit, o.Used(path, name)), true
}

// HasBorrowed reports whether the group, and each of its ancestors below the one that it has in common with the other
// group, uses more than its guarantee of the resource.
func (o *Tree) HasBorrowed(group, other, name string) bool {
	branches, others := []Branch{}, Chain(other)
	if o.IsInner(group) {
		branches = append(branches, Branch{group, true})
	}
	for _, at := range Chain(group) {
		if slices.Contains(others, at) {
			break
		}
		branches = append(branches, Branch{Path: at})
	}
	return !slices.ContainsFunc(branches, func(b Branch) bool {
		due, named := o.due(b, name)
		if !named {
			due = new(big.Int)
		}
		return o.usedIn(b, name).Cmp(due) <= 0
	})
}
