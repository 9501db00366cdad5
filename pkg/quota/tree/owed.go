package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// A group is owed a demand that stays within the guarantee of its own node. Against the branches below a common
// ancestor, it is also owed a demand that stays within the guarantee of its branch below that ancestor: what is
// guaranteed to a department serves all its teams.

// Owed reports whether the group is owed the demand against the siblings of the branch.
func (g *group) Owed(d quota.Demand, b quota.Branch) bool {
	if b.Own && g.chain[0].inner {
		return g.isWithin(0, d, quota.OwnMin)
	}
	if g.isWithin(0, d, quota.Min) {
		return true
	}
	for i, id := range g.ids {
		if id == b.Node {
			return i > 0 && g.isWithin(i, d, quota.Min)
		}
	}
	return false
}

// isWithin reports whether a node of the chain with the demand stays within its guarantee, for each resource that the
// guarantee names. It must name at least one requested resource.
func (g *group) isWithin(at int, d quota.Demand, bound quota.Bound) bool {
	n, guaranteed := g.chain[at], false
	for _, a := range d.Requests {
		if a.Value <= 0 || !isGuaranteed(n, a) {
			continue
		}
		if a.Value > n.room(a.ID, bound) {
			return false
		}
		guaranteed = true
	}
	return guaranteed
}

// branchBelow is a branch of the group below a node of the chain that competes for the room of that node: a node of
// the chain and the bound of its guarantee.
type branchBelow struct {
	at    int
	bound quota.Bound
}

// branchesBelow returns the branches that make the group owed a demand at a node of the chain. Any one of them is
// enough. There are at most two.
func (g *group) branchesBelow(at int) []branchBelow {
	switch at {
	case 0:
		return []branchBelow{{0, quota.OwnMin}}
	case 1:
		return []branchBelow{{0, quota.Min}}
	default:
		return []branchBelow{{0, quota.Min}, {at - 1, quota.Min}}
	}
}

// paused returns the refusal of a demand that would borrow what is reserved.
func (g *group) paused(d quota.Demand) *quota.Refusal {
	for at, n := range g.chain {
		a, borrowed := g.first(n, d, func(n *node, a resources.Amount) bool {
			return a.Value > n.room(a.ID, quota.Lending) && g.borrows(at, a)
		})
		if !borrowed {
			continue
		}
		r := g.refusal(at, a, quota.Lending, wellknown.ReasonBorrowingPaused)
		r.Reserved = n.reserved(a.ID).Clamp()
		// The refusal also ends when the group can get the resource without borrowing.
		for _, b := range g.branchesBelow(at) {
			if min, named := g.chain[b.at].min(a.ID); named && a.Value <= min {
				r.Also = append(r.Also, quota.Lack{Space: g.space(b, a), Amount: a.Value})
			}
		}
		return r
	}
	return nil
}

func (g *group) space(b branchBelow, a resources.Amount) quota.Space {
	return quota.Space{Node: g.ids[b.at], Resource: a.ID, Bound: b.bound}
}

// borrows reports whether the group borrows the amount at a node of the chain: no branch below it stays within its
// guarantee with the amount.
func (g *group) borrows(at int, a resources.Amount) bool {
	for _, b := range g.branchesBelow(at) {
		if n := g.chain[b.at]; isGuaranteed(n, a) && a.Value <= n.room(a.ID, b.bound) {
			return false
		}
	}
	return true
}

// claim adds to a refusal what the demand lacks, if it is owed all of that: everything that it lacks is guaranteed to
// it and used by others above their guarantee. Otherwise, it adds what must be freed before this is true.
func (g *group) claim(d quota.Demand, r *quota.Refusal) {
	var owed, also []quota.Lack
	onlyOwed := true
	for at, n := range g.chain {
		for _, a := range d.Requests {
			if a.Value <= 0 || !hasNoRoom(n, a) {
				continue
			}
			space := quota.Space{Node: g.ids[at], Resource: a.ID, Bound: quota.Max}
			switch {
			case !g.isOwedOf(at, d, a):
				onlyOwed = false
				if space != r.Lack.Space {
					also = append(also, quota.Lack{Space: space, Amount: a.Value})
				}
				also = append(also, g.untilOwed(at, d, a)...)
			case n.room(a.ID, quota.Borrowers) == 0:
				onlyOwed = false
				space.Bound = quota.Borrowers
				also = append(also, quota.Lack{Space: space, Amount: 1})
			default:
				space.Bound = quota.Lending
				owed = append(owed, quota.Lack{Space: space, Amount: a.Value})
			}
		}
	}
	r.Also = also
	if onlyOwed {
		r.Owed = owed
	}
}

// isOwedOf reports whether the group is owed the demand at a node of the chain because of a guarantee
// that names the resource of the amount.
func (g *group) isOwedOf(at int, d quota.Demand, a resources.Amount) bool {
	for _, b := range g.branchesBelow(at) {
		if isGuaranteed(g.chain[b.at], a) && g.isWithin(b.at, d, b.bound) {
			return true
		}
	}
	return false
}

// mostBorrowers is how many borrowers a message names.
const mostBorrowers = 3

// sayOwed returns the message of a refusal of what the group is owed. It names the quotas that have borrowed it when
// the message is composed, largest amount first.
func (g *group) sayOwed(r *quota.Refusal) string {
	plain := *r
	plain.Say, plain.Note, plain.Others = nil, "", nil
	message := plain.Message()
	at, id := slices.Index(g.ids, r.Lack.Node), r.Lack.Resource
	if at < 0 {
		return message
	}
	for _, b := range g.branchesBelow(at) {
		n := g.chain[b.at]
		room := n.room(id, b.bound)
		if !isGuaranteed(n, resources.Amount{ID: id}) || r.Asked > room {
			continue
		}
		borrowers := g.borrowers(at, b, id)
		if len(borrowers) == 0 {
			break
		}
		format := func(v int64) string { return resources.Format(r.Resource, v) }
		names := make([]string, 0, mostBorrowers)
		for _, l := range borrowers[:min(len(borrowers), mostBorrowers)] {
			names = append(names, fmt.Sprintf("%s (%s)", l.path, format(l.amount)))
		}
		more := ""
		if left := len(borrowers) - len(names); left > 0 {
			more = fmt.Sprintf(" and %d more", left)
		}
		guarantee, _ := n.min(id)
		return fmt.Sprintf("%s; quota %s is owed %s of its min %s; borrowed by %s%s",
			message, n.path, format(room), format(guarantee), strings.Join(names, ", "), more)
	}
	return message
}

// borrower is a quota that uses more than its guarantee.
type borrower struct {
	path   string
	amount int64
}

// borrowers returns the quotas at and below a node of the chain that use more of a resource than is guaranteed to
// them, except the branch of the group.
func (g *group) borrowers(at int, owed branchBelow, id resources.ID) (all []borrower) {
	add := func(n *node, used resources.Sum, guarantee int64) {
		if used.Exceeds(guarantee) {
			all = append(all, borrower{n.path, -used.Below(guarantee)})
		}
	}
	for level := at; level > owed.at || level == at; level-- {
		for i, n := range g.tree.nodes {
			if g.tree.above[i] != int(g.ids[level]) || level > 0 && n == g.chain[level-1] {
				continue
			}
			if c := n.cell(id); c != nil {
				add(n, c.used, c.min.value)
			}
		}
		if c := g.chain[level].cell(id); level > 0 && c != nil {
			add(g.chain[level], c.own, c.ownMin())
		}
	}
	slices.SortFunc(all, func(a, b borrower) int {
		return cmp.Or(cmp.Compare(b.amount, a.amount), cmp.Compare(a.path, b.path))
	})
	return all
}

// untilOwed returns the room within a guarantee that must be freed, for one resource, before a branch of the group is
// owed the demand.
func (g *group) untilOwed(at int, d quota.Demand, of resources.Amount) (lacks []quota.Lack) {
	for _, b := range g.branchesBelow(at) {
		n := g.chain[b.at]
		if !isGuaranteed(n, of) {
			continue
		}
		if lack, possible := g.lacksWithin(b, d); possible {
			lacks = append(lacks, lack)
		}
	}
	return lacks
}

// untilReclaims adds to a refusal the room that must be freed before the demand is within the guarantee of the group's
// own node. From then on, others can be evicted for it. The guarantee of a branch above is not enough for that.
func (g *group) untilReclaims(d quota.Demand, r *quota.Refusal) {
	if lack, lacks := g.lacksWithin(branchBelow{0, quota.Min}, d); lacks && !slices.Contains(r.Also, lack) {
		r.Also = append(slices.Clip(r.Also), lack)
	}
}

// lacksWithin returns the first room that the demand lacks within the guarantee of a branch; false if it lacks none
// or can never fit in it.
func (g *group) lacksWithin(b branchBelow, d quota.Demand) (lack quota.Lack, lacks bool) {
	for _, a := range d.Requests {
		c := g.chain[b.at].cell(a.ID)
		if a.Value <= 0 || c == nil || !c.min.named {
			continue
		}
		if b.bound == quota.OwnMin && a.Value > c.ownMin() || a.Value > c.min.value {
			return quota.Lack{}, false
		}
		if !lacks && a.Value > g.chain[b.at].room(a.ID, b.bound) {
			lack, lacks = quota.Lack{Space: g.space(b, a), Amount: a.Value}, true
		}
	}
	return lack, lacks
}
