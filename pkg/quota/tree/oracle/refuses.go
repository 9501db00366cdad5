package oracle

import (
	"math/big"
	"slices"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// Refuses returns why a group refuses a demand now; empty if the demand fits.
func (o *Tree) Refuses(group string, d quota.Demand) wellknown.Reason {
	if o.lacking(group, d, true) != "" {
		return wellknown.ReasonExceedsMaxQuota
	}
	own, above := o.lacking(group, d, false), wellknown.Reason("")
	if own == "" || !o.lacksAt(group, d) {
		own, above = "", own
	}
	fixed := o.beyondMin(group, d)
	switch {
	case fixed == wellknown.ReasonExceedsMinQuota:
		return fixed
	case own != "":
		return own
	case fixed != "":
		return fixed
	case o.Reserving && o.borrowsReserved(group, d):
		return wellknown.ReasonBorrowingPaused
	default:
		return above
	}
}

// lacking is the reason of the nearest node without room, if any; with alone, of the nearest node that has no room
// even if nothing is used.
func (o *Tree) lacking(group string, d quota.Demand, alone bool) wellknown.Reason {
	for _, path := range Chain(group) {
		for _, name := range o.requested(d) {
			requested, _ := d.Requests.Get(o.names.ID(name))
			limit, named := o.Limit(path, name)
			if requested == 0 || !named {
				continue
			}
			sum := big.NewInt(requested)
			if !alone {
				sum.Add(sum, o.Used(path, name))
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

// requested lists the names of the resources of a demand.
func (o *Tree) requested(d quota.Demand) []string {
	var names []string
	for _, a := range d.Requests {
		names = append(names, o.names.Name(a.ID))
	}
	slices.Sort(names)
	return names
}

func (o *Tree) lacksAt(path string, d quota.Demand) bool {
	for _, a := range d.Requests {
		name := o.names.Name(a.ID)
		limit, named := o.Limit(path, name)
		if sum := o.Used(path, name); named && sum.Add(sum, big.NewInt(a.Value)).Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// beyondMin is why a non-preemptible demand is not within its group's guarantee.
func (o *Tree) beyondMin(group string, d quota.Demand) wellknown.Reason {
	if d.Preemptible {
		return ""
	}
	verdict, guaranteed, asks := wellknown.Reason(""), false, false
	bound := func(asked int64, used, limit *big.Int) bool {
		if big.NewInt(asked).Cmp(limit) > 0 {
			return false
		}
		if used.Add(used, big.NewInt(asked)).Cmp(limit) > 0 {
			verdict = wellknown.ReasonQuotaExceeded
		}
		return true
	}
	possible := true
	for _, a := range d.Requests {
		name := o.names.Name(a.ID)
		if name == quota.JobsResource {
			continue
		}
		asks = true
		if due, named := o.Guarantee(group, name); named {
			guaranteed = true
			fixed := o.usedBy(group, name, func(c Charged) bool { return c.Path == group && !c.Gone && !c.Demand.Preemptible })
			possible = bound(a.Value, fixed, beyond(due, o.below(group, name))) && possible
			continue
		}
		for _, path := range Chain(group) {
			if limit, limited := o.Limit(path, name); limited {
				aside := o.usedBy(path, name, func(c Charged) bool {
					_, named := o.Guarantee(c.Path, name)
					return !c.Demand.Preemptible && !c.Gone && !named
				})
				possible = bound(a.Value, aside, beyond(limit, o.below(path, name))) && possible
			}
		}
	}
	switch {
	case !asks:
		return ""
	case !guaranteed || !possible:
		return wellknown.ReasonExceedsMinQuota
	default:
		return verdict
	}
}

// LacksFixed reports whether beyondMin refuses a demand.
func (o *Tree) LacksFixed(group string, d quota.Demand) bool { return o.beyondMin(group, d) != "" }

// borrowsReserved reports whether the group would borrow what is reserved at one of its nodes.
func (o *Tree) borrowsReserved(group string, d quota.Demand) bool {
	for _, path := range Chain(group) {
		for _, a := range d.Requests {
			name := o.names.Name(a.ID)
			limit, limited := o.Limit(path, name)
			reserved := o.Reserved[Place{path, name}]
			if !limited || reserved == 0 {
				continue
			}
			sum := o.Used(path, name)
			sum.Add(sum, big.NewInt(reserved)).Add(sum, big.NewInt(a.Value))
			if sum.Cmp(limit) > 0 && o.Borrows(group, path, a) {
				return true
			}
		}
	}
	return false
}
