package checks

import (
	"fmt"
	"strings"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// usage is what is charged at each node of a tree: what was admitted, with a number of jobs, and what the pods of
// jobs request in addition.
type usage struct {
	tree    *facts.Tree
	used    map[*facts.Node]facts.Amounts
	charges map[*facts.Node][]*state.Charge
}

func usageOf(s *state.State, t *facts.Tree, charges []*state.Charge) *usage {
	u := &usage{t, map[*facts.Node]facts.Amounts{}, map[*facts.Node][]*state.Charge{}}
	for _, n := range t.Nodes {
		u.used[n] = facts.Amounts{}
	}
	for _, c := range charges {
		for _, unit := range c.Holding {
			for n := s.Node(t, unit); n != nil; n = n.Parent {
				u.used[n].AddTimes(unit.Asked(), 1)
				u.used[n][facts.MaxJobs]++
			}
		}
		if c.Unit == nil {
			continue
		}
		grown := c.Grown()
		for n := s.Node(t, c.Unit); n != nil; n = n.Parent {
			u.charges[n] = append(u.charges[n], c)
			u.used[n].AddTimes(grown, 1)
		}
	}
	return u
}

// excess returns the limits that the admission of a unit exceeded, or an empty text.
func (u *usage) excess(s *state.State, unit *state.Unit) string {
	var parts []string
	asked := facts.Amounts{facts.MaxJobs: 1}
	asked.AddTimes(unit.Asked(), 1)
	for n := s.Node(u.tree, unit); n != nil; n = n.Parent {
		for _, name := range asked.Names() {
			limit, limited := n.Limit(name, s.Options.OversellRate)
			if total := u.used[n][name]; limited && asked[name] > 0 && total > limit {
				parts = append(parts, fmt.Sprintf("node %s: %s", n.Path, exceeds(name, total, asked[name], limit, u.users(n, name, unit))))
			}
		}
	}
	return strings.Join(parts, "; ")
}

// users lists who is charged at a node, except for a unit, and what their pods request of a resource in addition
// to what was admitted.
func (u *usage) users(n *facts.Node, name string, except *state.Unit) (users []string) {
	for _, c := range u.charges[n] {
		switch more := c.Grown()[name]; {
		case more > 0:
			users = append(users, fmt.Sprintf("%s, whose pods request %s more than was admitted", c, facts.Figure(name, more)))
		case len(c.Holding) > 0 && c.Unit != except:
			users = append(users, c.String())
		}
	}
	return users
}

// exceeds describes that the use of a resource, with what an admission requested, is above a limit.
func exceeds(name string, total, asked, limit int64, users []string) string {
	return fmt.Sprintf("%s used %s + requested %s exceeds the limit %s (used by %s)", name,
		facts.Figure(name, total-asked), facts.Figure(name, asked), facts.Figure(name, limit), few(users))
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
