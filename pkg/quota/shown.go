package quota

import "kube-queue.dev/kube-queue/pkg/resources"

// MostUnlimited is the maximum number of resources that are shown for a node although no node limits
// or guarantees them. Users may request anything, and what is shown of it must not grow without bounds.
const MostUnlimited = 16

// Shown selects the resources that are shown for a node: those that any node names in its min or max,
// and a number of others.
type Shown struct {
	named resources.IDs
	// end is the number after the greatest ID of the others.
	end resources.ID
	// Omitted is the number of resources that are not shown.
	Omitted int
}

// Named returns the resources that any of the nodes names in its min or max.
func Named(nodes []NodeUsage) resources.IDs {
	var named resources.IDs
	for _, n := range nodes {
		named.AddVector(n.Min)
		named.AddVector(n.Max)
	}
	return named
}

// Show selects the resources of the vector that are named, and of the others as many as given, in the
// order of first use.
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
