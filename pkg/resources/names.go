// Package resources implements exact amounts of resources. It is the only package that converts a
// Quantity into a number.
//
// Terms. An amount is a whole number of base units: thousandths of a core for cpu, bytes for memory
// and storage, a count for everything else. A vector is a list of amounts by resource. Request
// converts a request into a vector and rounds up. LimitValue converts a limit into an amount and
// rounds down. Rounding therefore never gives more than a user wrote.
//
// Invariants. Arithmetic is exact and uses integers. An amount that does not fit is an error in a request. In a limit
// it becomes the largest int64, never a smaller number. A resource that a vector does not contain is absent, which is
// not zero: an absent limit limits nothing, and a limit of zero allows nothing. No number is special. No result depends
// on the order of a map.
package resources

import (
	"maps"
	"slices"
	"strings"
)

// ID represents the name of a resource. IDs are dense and start at 0, in the order of first use.
type ID int32

// Names assigns IDs to resource names. Vectors can be compared only if their IDs come from the same
// Names. A name keeps its ID until Forget removes the name. It is not safe for concurrent use.
type Names struct {
	ids map[string]ID
	// names are indexed by ID. free are the IDs in it without a name, the largest first.
	names []string
	free  []ID
}

// NewNames returns Names without any name.
func NewNames() *Names {
	return &Names{ids: map[string]ID{}}
}

// ID returns the ID of the name, a new one if the name was not used before.
func (n *Names) ID(name string) ID {
	if id, ok := n.ids[name]; ok {
		return id
	}
	name = strings.Clone(name) // it may be part of a large text
	id := ID(len(n.names))
	if last := len(n.free) - 1; last >= 0 {
		id, n.free = n.free[last], n.free[:last]
		n.names[id] = name
	} else {
		n.names = append(n.names, name)
	}
	n.ids[name] = id
	return id
}

// Name returns the name of the ID; empty for an ID that these Names did not assign.
func (n *Names) Name(id ID) string {
	if id < 0 || int(id) >= len(n.names) {
		return ""
	}
	return n.names[id]
}

// Clone returns independent Names with the same IDs.
func (n *Names) Clone() *Names {
	return &Names{ids: maps.Clone(n.ids), names: slices.Clone(n.names), free: slices.Clone(n.free)}
}

// Len returns the number of names.
func (n *Names) Len() int { return len(n.ids) }

// Forget removes all names whose IDs are not in the set. Their IDs are reused, so nothing may still refer to them.
func (n *Names) Forget(used IDs) {
	// A map never shrinks, so a new one is made.
	n.ids, n.free = map[string]ID{}, nil
	end := 0
	for i, name := range n.names {
		if used.Has(ID(i)) {
			n.ids[name] = ID(i)
			end = i + 1
		} else {
			n.names[i] = ""
		}
	}
	n.names = slices.Clone(n.names[:end])
	for i := end - 1; i >= 0; i-- {
		if !used.Has(ID(i)) {
			n.free = append(n.free, ID(i))
		}
	}
}
