package checks

import (
	"fmt"
	"strings"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// usage is what is charged at each node of a tree: what was admitted, with a number of jobs, and by how much
// the pods of jobs request more.
type usage struct {
	tree            *facts.Tree
	admitted, grown map[*facts.Node]facts.Amounts
	charges         map[*facts.Node][]*state.Charge
}

func usageOf(s *state.State, t *facts.Tree, charges []*state.Charge) *usage {
	u := &usage{t, map[*facts.Node]facts.Amounts{}, map[*facts.Node]facts.Amounts{}, map[*facts.Node][]*state.Charge{}}
	for _, n := range t.Nodes {
		u.admitted[n], u.grown[n] = facts.Amounts{}, facts.Amounts{}
	}
	for _, c := range charges {
		for _, unit := range c.Holding {
			for n := s.Node(t, unit); n != nil; n = n.Parent {
				u.admitted[n].AddTimes(unit.Asked(), 1)
				u.admitted[n][facts.MaxJobs]++
			}
		}
		if c.Unit == nil {
			continue
		}
		grown := c.Grown()
		for n := s.Node(t, c.Unit); n != nil; n = n.Parent {
			u.charges[n] = append(u.charges[n], c)
			u.grown[n].AddTimes(grown, 1)
		}
	}
	return u
}

// excess returns the limits that the admission of a unit exceeded, or an empty text. What pods request beyond what
// was admitted counts only if it is asked for.
func (u *usage) excess(s *state.State, unit *state.Unit, withPods bool) string {
	var parts []string
	asked := facts.Amounts{facts.MaxJobs: 1}
	asked.AddTimes(unit.Asked(), 1)
	for n := s.Node(u.tree, unit); n != nil; n = n.Parent {
		for _, name := range asked.Names() {
			limit, limited := n.Limit(name, s.Options.OversellRate)
			total := u.admitted[n][name]
			if withPods {
				total += u.grown[n][name]
			}
			if limited && asked[name] > 0 && total > limit {
				parts = append(parts, fmt.Sprintf("node %s: %s used %s + requested %s exceeds the limit %s (%s)", n.Path, name,
					facts.Figure(name, total-asked[name]), facts.Figure(name, asked[name]), facts.Figure(name, limit), u.users(n, name, unit, withPods)))
			}
		}
	}
	return strings.Join(parts, "; ")
}

// users lists who holds a resource at a node, except for a unit, and what their pods request in addition.
func (u *usage) users(n *facts.Node, name string, except *state.Unit, withPods bool) string {
	var holders, grown []string
	for _, c := range u.charges[n] {
		if len(c.Holding) > 0 && c.Unit != except {
			holders = append(holders, c.String())
		}
		if more := c.Grown()[name]; withPods && more > 0 {
			grown = append(grown, facts.Figure(name, more)+" of "+c.String())
		}
	}
	text := "held by " + few(holders)
	if grown != nil {
		text += "; pods in addition to what was admitted: " + few(grown)
	}
	return text
}

func few(names []string) string {
	switch {
	case len(names) == 0:
		return "nobody"
	case len(names) > 4:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:4], ", "), len(names)-4)
	}
	return strings.Join(names, ", ")
}
