package quota

import "kube-queue.dev/kube-queue/pkg/resources"

// MostUnlimited is the maximum number of resources that are shown for a node although no node limits or guarantees
// them. Users can request anything, so what is shown must be bounded.
const MostUnlimited = 16

// Shown selects the resources that are shown for a node: those in the min or max of any node, and a number of others.
type Shown struct {
	named resources.IDs
	// end is the largest ID of the others plus 1.
	end resources.ID
	// Omitted is the number of resources that are not shown.
	Omitted int
}

// Named returns the resources in the min or max of any of the nodes.
func Named(nodes []NodeUsage) resources.IDs {
	var named resources.IDs
	for _, n := range nodes {
		named.AddVector(n.Min)
		named.AddVector(n.Max)
	}
	return named
}

// Show selects the named resources of the vector, and up to most others, in the order of first use.
func Show(v resources.Vector, named resources.IDs, most int) Shown {
	s := Shown{named: named}
	for _, a := range v {
		switch {
		case named.Has(a.ID):
		case most > 0:
			most--
			s.end = a.ID + 1
		default:
			s.Omitted++
		}
	}
	return s
}

// Of returns the amounts of the resources that are shown.
func (s Shown) Of(v resources.Vector) resources.Vector {
	var shown resources.Vector
	for _, a := range v {
		if s.named.Has(a.ID) || a.ID < s.end {
			shown = append(shown, a)
		}
	}
	return shown
}
