package audit

import (
	"fmt"
	"strings"
)

// overLimit sums at each admission what the units that hold quota request, or what their pods request if
// that is more.
func overLimit() law {
	admissions := 0
	return law{
		name: "over-limit", doc: "no admission raises the use of a quota node above its max, or of a ResourceQuota above its hard limit, also if pods count that request more than was admitted, or are left of jobs",
		see: func(s *world, c *change, f *Check) {
			if !c.admitted || !s.holds(c.unit) {
				return // or its job is over, so it charges nothing
			}
			admissions++
			if c.unit.now.bad != "" {
				f.fail("unreadable", c.Moment, c.holder(), "it was admitted, but its request cannot be read: %s", c.unit.now.bad)
			}
			if s.resourceQuota {
				s.overQuotas(c, f)
			} else {
				s.overTree(c, f)
			}
		},
		finish: func(s *world, f *Check) {
			f.NotChecked = admissions - f.Checked
			switch {
			case f.NotChecked > 0 && s.resourceQuota:
				f.note("%d admissions were in namespaces without a readable ResourceQuota that limits pods", f.NotChecked)
			case f.NotChecked > 0 && s.trees.changes > 0:
				f.note("%d admissions happened before the first valid quota tree", f.NotChecked)
			case f.NotChecked > 0:
				f.note("the log contains no valid quota tree, so limits are not checked")
			}
		},
	}
}

// overTree checks an admission against the versions of the tree that may justify it. The pods that count are
// those that the controller must have seen.
func (s *world) overTree(c *change, f *Check) {
	trees := s.trees.within(c.Time)
	if len(trees) == 0 {
		return // reported at the end: the cluster may use another backend
	}
	f.Checked++
	at := c.requested()
	charges := s.charges("", func(p *pod) bool { return requesting(p) && !s.unseen(p, at, s.podLag) })
	var broken []string
	for _, t := range trees {
		why := s.usageOf(t, charges).excess(s, c.unit)
		if why == "" {
			return
		}
		broken = append(broken, why)
	}
	f.fail("over-limit", c.Moment, c.holder(), "%s", strings.Join(broken, "; it did not fit in the previous tree either: "))
}

// holder returns the job of an admitted unit, or the unit if it has none.
func (c *change) holder() fmt.Stringer {
	if c.job != nil {
		return c.job
	}
	return c.unit
}

// usage is what is charged at each node of a tree: what was admitted, with a number of jobs, and what the pods of
// jobs request in addition.
type usage struct {
	tree    *tree
	used    map[*node]amounts
	charges map[*node][]*charge
}

func (s *world) usageOf(t *tree, charges []*charge) *usage {
	u := &usage{t, map[*node]amounts{}, map[*node][]*charge{}}
	for _, n := range t.nodes {
		u.used[n] = amounts{}
	}
	for _, c := range charges {
		for _, unit := range c.holding {
			for n := s.nodeOf(t, unit); n != nil; n = n.parent {
				u.used[n].addTimes(unit.asked(), 1)
				u.used[n][maxJobs]++
			}
		}
		if c.unit == nil {
			continue
		}
		grown := c.grown()
		for n := s.nodeOf(t, c.unit); n != nil; n = n.parent {
			u.charges[n] = append(u.charges[n], c)
			u.used[n].addTimes(grown, 1)
		}
	}
	return u
}

// excess returns the limits that the admission of a unit exceeded, or an empty text.
func (u *usage) excess(s *world, unit *unit) string {
	var parts []string
	asked := amounts{maxJobs: 1}
	asked.addTimes(unit.asked(), 1)
	for n := s.nodeOf(u.tree, unit); n != nil; n = n.parent {
		for _, name := range asked.names() {
			limit, limited := n.limit(name, s.oversell)
			if total := u.used[n][name]; limited && asked[name] > 0 && total > limit {
				parts = append(parts, fmt.Sprintf("node %s: %s", n.path, exceeds(name, total, asked[name], limit, u.users(n, name, unit))))
			}
		}
	}
	return strings.Join(parts, "; ")
}

// users lists who is charged at a node, except for a unit, and what their pods request of a resource in addition
// to what was admitted.
func (u *usage) users(n *node, name string, except *unit) (users []string) {
	for _, c := range u.charges[n] {
		switch more := c.grown()[name]; {
		case more > 0:
			users = append(users, fmt.Sprintf("%s, whose pods request %s more than was admitted", c, figure(name, more)))
		case len(c.holding) > 0 && c.unit != except:
			users = append(users, c.String())
		}
	}
	return users
}

// overQuotas checks an admission against every ResourceQuota of its namespace.
func (s *world) overQuotas(c *change, f *Check) {
	at := c.requested()
	charges := s.charges(c.unit.namespace, func(p *pod) bool { return !s.unseen(p, at, s.podLag) })
	limited := false
	for _, q := range s.quotas[c.unit.namespace] {
		broken := ""
		for i, version := range q.within(c.Time) {
			why := ""
			if version != nil && len(version.limits) > 0 {
				limited = true
				why = version.excess(q.name, charges, c.unit)
			}
			if why == "" {
				broken = "" // one version justifies it
				break
			}
			if i == 0 {
				broken = why
			}
		}
		if broken != "" {
			f.fail("over-limit", c.Moment, c.holder(), "%s", broken)
		}
	}
	if limited {
		f.Checked++
	}
}

// excess returns the limits of the quota that the admission of a unit exceeded, or an empty text.
func (q *quotaFacts) excess(name string, charges []*charge, unit *unit) string {
	var parts []string
	for i := range q.limits {
		limit := &q.limits[i]
		more := q.weigh(limit, unit.now.pods...)
		if more <= 0 {
			continue
		}
		if limit.unknown {
			return fmt.Sprintf("ResourceQuota %s has no status for %s, so no pod can be created", name, limit.key)
		}
		var total int64
		var holders []string
		for _, c := range charges {
			if all := q.taken(limit, c); all > 0 {
				total += all
				holders = append(holders, fmt.Sprintf("%s by %s", figure(limit.key, all), c))
			}
		}
		if total > limit.hard {
			parts = append(parts, exceeds(limit.key, total, more, limit.hard, holders))
		}
	}
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("ResourceQuota %s: %s", name, strings.Join(parts, "; "))
}

// taken returns how much of a limit a charge uses: what its units request, or its pods if that is more. Of a
// pod that was resized only the number is known.
func (q *quotaFacts) taken(limit *quotaLimit, c *charge) int64 {
	var admitted, pods int64
	for _, u := range c.holding {
		admitted += q.weigh(limit, u.now.pods...)
	}
	for _, p := range c.pods {
		g := p.podGroup
		if p.resized {
			g.requests, g.limits = nil, nil
		}
		pods += q.weigh(limit, g)
	}
	return max(admitted, pods)
}

// exceeds describes that the use of a resource, with what an admission requested, is above a limit.
func exceeds(name string, total, asked, limit int64, users []string) string {
	return fmt.Sprintf("%s used %s + requested %s exceeds the limit %s (used by %s)", name,
		figure(name, total-asked), figure(name, asked), figure(name, limit), few(users))
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
