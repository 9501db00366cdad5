package queue

import "slices"

// Policy decides the order of items with the same priority in a queue, which items can pass others, and when a refused
// item is tried again. Items with higher priority always come first, because preemption and backoff rely on it. Each
// policy is a file of this package. Policies are compared by identity.
type Policy struct {
	// Name is what Queues and flags call the policy.
	Name string
	// Before reports whether an item comes before another one with the same priority. It must be a total order that depends
	// only on the fields of the items.
	Before func(a, b *Item) bool
	// FrontOnly lets no item pass another: only the front item is tried.
	FrontOnly bool
	// ByLimit separates items with different limits into different shapes, so that Before can use the Length of a shape.
	ByLimit bool
	// Backoff makes a refused shape wait, longer each time, while others are tried before it. If none of them can use the
	// room, the shape in backoff gets it.
	Backoff bool
}

// Policies returns all policies. The first is the default.
func Policies() []*Policy { return []*Policy{RoundRobin, Priority, Block, ShortestFirst} }

// PolicyNames returns the names of all policies.
func PolicyNames() []string {
	var names []string
	for _, p := range Policies() {
		names = append(names, p.Name)
	}
	return names
}

// PolicyNamed returns the policy with the name; nil if there is none.
func PolicyNamed(name string) *Policy {
	if at := slices.IndexFunc(Policies(), func(p *Policy) bool { return p.Name == name }); at >= 0 {
		return Policies()[at]
	}
	return nil
}

// String returns the name of the policy; "" for nil.
func (p *Policy) String() string {
	if p == nil {
		return ""
	}
	return p.Name
}
