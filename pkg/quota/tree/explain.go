package tree

import (
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Lacks returns a refusal for every limit of the chain that leaves no room for the demand now.
func (t *Tree) Lacks(of quota.Group, d quota.Demand) (lacks []*quota.Refusal) {
	g, is := of.(*group)
	if !is {
		return nil
	}
	add := func(at int, a resources.Amount, bound quota.Bound) *quota.Refusal {
		r := g.refusal(at, a, bound, g.reasonFor(a))
		lacks = append(lacks, r)
		return r
	}
	for at, n := range g.chain {
		for _, a := range g.byName(d) {
			if neverFits(n, a) {
				continue
			}
			switch {
			case hasNoRoom(n, a):
				add(at, a, quota.Max)
			case at == 0 && !d.Preemptible && !aboveMin(n, a) && hasNoFixedRoom(n, a):
				add(at, a, quota.FixedMin)
			case !d.Preemptible && g.isAside(a) && !aboveFreeMax(n, a) && a.Value > n.room(a.ID, quota.FixedMax):
				add(at, a, quota.FixedMax)
			case t.reserving && !t.plan.unreserved && a.Value > n.room(a.ID, quota.Lending) && g.borrows(at, a):
				add(at, a, quota.Lending).Reserved = n.reserved(a.ID).Clamp()
			case t.plan.cells > 0 && a.Value > n.room(a.ID, quota.Kept):
				add(at, a, quota.Kept).Reserved = atLeastNone(n.cell(a.ID).planned.used).Clamp()
			}
		}
	}
	return lacks
}

// Exceeds returns a refusal for every limit of the chain that the demand alone exceeds, as Fits finds them one after
// the other. The guarantee of a group that guarantees none of the requested resources is 0.
func (t *Tree) Exceeds(of quota.Group, d quota.Demand) (exceeded []*quota.Refusal) {
	g, is := of.(*group)
	if !is {
		return nil
	}
	add := func(at int, a resources.Amount, bound quota.Bound, reason wellknown.Reason) {
		exceeded = append(exceeded, g.refusal(at, a, bound, reason))
	}
	requests := g.byName(d)
	guaranteed := slices.ContainsFunc(requests, func(a resources.Amount) bool { return isGuaranteed(g.chain[0], a) })
	for at, n := range g.chain {
		for _, a := range requests {
			if neverFits(n, a) {
				add(at, a, quota.Max, wellknown.ReasonExceedsMaxQuota)
			}
			switch {
			case d.Preemptible:
			case at == 0 && (aboveMin(n, a) || !guaranteed && g.isWork(n, a)):
				add(at, a, quota.FixedMin, wellknown.ReasonExceedsMinQuota)
			case g.isAside(a) && aboveFreeMax(n, a):
				add(at, a, quota.FixedMax, wellknown.ReasonExceedsMinQuota)
			}
		}
	}
	return exceeded
}

// byName returns the requests above 0, in the order of resource names.
func (g *group) byName(d quota.Demand) (requests resources.Vector) {
	for _, a := range d.Requests {
		if a.Value > 0 {
			requests = append(requests, a)
		}
	}
	slices.SortFunc(requests, func(a, b resources.Amount) int {
		return strings.Compare(g.tree.names.Name(a.ID), g.tree.names.Name(b.ID))
	})
	return requests
}

// Holds returns how much of the resource the charge uses at the node of the refusal. Only non-preemptible units use
// FixedMin and FixedMax.
func (t *Tree) Holds(r *quota.Refusal, c quota.Charged) int64 {
	if c.Path != r.Node && !strings.HasPrefix(c.Path, r.Node+"/") {
		return 0
	}
	used, _ := c.Charge.Total().Get(r.Lack.Resource)
	switch r.Lack.Bound {
	case quota.FixedMin:
		if c.Path != r.Node || !t.of(c).isFixed(c.Charge) {
			return 0
		}
	case quota.FixedMax:
		if g := t.of(c); !g.isFixed(c.Charge) || !g.isAside(resources.Amount{ID: r.Lack.Resource, Value: used}) {
			return 0
		}
	}
	return used
}

// Known returns the vector unchanged: a tree uses the resource names of pods.
func (t *Tree) Known(v resources.Vector) resources.Vector { return v }

// Of returns the group that the charge was charged to, in this tree or in the one that it is a copy of.
func (t *Tree) Of(c quota.Charged) quota.Group { return t.of(c) }

func (t *Tree) of(c quota.Charged) *group {
	if i, exists := t.places.paths[c.Path]; exists && !c.Remains {
		return t.groups[i].(*group)
	}
	return t.nearest(c.Path)
}
