// Package resources holds exact amounts of resources. It is the only place
// where a Quantity becomes a number.
//
// Words. An amount is a whole number of base units: thousandths of a core for
// cpu, bytes for memory and storage, a count for everything else. A vector is a
// list of amounts by resource. Request turns what a unit asks for into a vector
// and rounds up; LimitValue turns what it may have into an amount and rounds down: no
// rounding ever gives away more than a user wrote.
//
// Invariants. Arithmetic is on integers and exact; what does not fit is an error
// in a request and the greatest number in a limit, never a smaller number. A
// resource that a vector does not hold is absent, which is not zero: an absent
// limit limits nothing, a limit of zero allows nothing. No number is special.
// No outcome depends on the order of a map.
package resources

// ID stands for the name of a resource. IDs are dense, from 0, in the order of
// first use.
type ID int32

// Names gives resource names their IDs. Vectors can be compared only when their
// IDs come from the same Names. It is not safe for concurrent use.
type Names struct {
	ids   map[string]ID
	names []string
}

// NewNames returns Names that know no name yet.
func NewNames() *Names {
	return &Names{ids: map[string]ID{}}
}

// ID of the name, a new one if the name was not used before.
func (n *Names) ID(name string) ID {
	if id, ok := n.ids[name]; ok {
		return id
	}
	id := ID(len(n.names))
	n.ids[name] = id
	n.names = append(n.names, name)
	return id
}

// Name that the ID stands for; empty for an ID that these Names did not give.
func (n *Names) Name(id ID) string {
	if id < 0 || int(id) >= len(n.names) {
		return ""
	}
	return n.names[id]
}
