package audit

import (
	"fmt"
	"slices"
	"strings"
)

// overLimit sums, at each admission, what the units that hold quota request, or what their pods request if that is
// more.
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
			case f.NotChecked > 0 && s.trees.now() != nil:
				f.note("%d admissions happened before the first valid quota tree", f.NotChecked)
			case f.NotChecked > 0:
				f.note("the log contains no valid quota tree, so limits are not checked")
			}
		},
	}
}

// holder returns the job of an admitted unit, or the unit if it has none.
func (c *change) holder() fmt.Stringer {
	if c.job != nil {
		return c.job
	}
	return c.unit
}

// overTree checks an admission against the versions of the tree that may justify it. It counts only pods that the
// controller must have seen.
func (s *world) overTree(c *change, f *Check) {
	if s.trees.now() == nil {
		return // reported at the end: the cluster may use another backend
	}
	f.Checked++
	at := c.requested()
	charges := s.charges("", func(p *pod) bool { return requesting(p) && !s.unseen(p, at, s.podLag) })
	why := s.trees.refusal(c.Time, func(t *tree) []string { return s.overNodes(t, charges, c.unit) })
	if why != "" {
		f.fail("over-limit", c.Moment, c.holder(), "%s", why)
	}
}

// overQuotas checks an admission against every ResourceQuota of its namespace.
func (s *world) overQuotas(c *change, f *Check) {
	at := c.requested()
	charges := s.charges(c.unit.namespace, func(p *pod) bool { return !s.unseen(p, at, s.podLag) })
	limited := false
	for _, q := range s.quotas[c.unit.namespace] {
		why := q.refusal(c.Time, func(version *quotaFacts) []string {
			if version == nil || len(version.hard) == 0 {
				return nil
			}
			limited = true
			return version.overKeys(q.name, charges, c.unit)
		})
		if why != "" {
			f.fail("over-limit", c.Moment, c.holder(), "%s", why)
		}
	}
	if limited {
		f.Checked++
	}
}

// part is what a charge uses: of a ResourceQuota, or at a node of a tree and the nodes above it.
type part struct {
	amounts
	of *charge
	at *node // nil for a ResourceQuota
}

// overNodes returns the limits of a tree that the admission of a unit exceeded.
func (s *world) overNodes(t *tree, charges []*charge, u *unit) (broken []string) {
	var parts []part
	for _, c := range charges {
		if c.unit != nil { // pods outside of the queue use nothing
			parts = append(parts, part{c.uses(), c, s.nodeOf(t, c.unit)})
		}
	}
	for n := s.nodeOf(t, u); n != nil; n = n.parent {
		below := slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !n.above(p.at) })
		broken = append(broken, over("node "+n.path, n.hard(s.oversell), u.asked(), below)...)
	}
	return broken
}

// overKeys returns the limits of the quota that the admission of a unit exceeded.
func (q *quotaFacts) overKeys(name string, charges []*charge, u *unit) []string {
	asked := amounts{}
	for key := range q.hard {
		asked[key] = weigh(key, u.now.pods...)
	}
	var parts []part
	for _, c := range charges {
		used := amounts{}
		for key := range q.hard {
			used[key] = c.taken(key)
		}
		parts = append(parts, part{used, c, nil})
	}
	return over("ResourceQuota "+name, q.hard, asked, parts)
}

// over returns the limits on what an admission requested that the parts exceed together.
func over(where string, hard, asked amounts, parts []part) (broken []string) {
	for _, name := range asked.names() {
		limit, limited := hard[name]
		if !limited || asked[name] <= 0 {
			continue
		}
		total := int64(0)
		var users []string
		for _, p := range parts {
			if n := p.amounts[name]; n > 0 {
				total += n
				users = append(users, fmt.Sprintf("%s by %s", figure(name, n), p.of))
			}
		}
		if total > limit {
			broken = append(broken, fmt.Sprintf("%s: %s used %s + requested %s exceeds the limit %s (%s)", where, name,
				figure(name, total-asked[name]), figure(name, asked[name]), figure(name, limit), few(users)))
		}
	}
	return broken
}

func few(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:4], ", "), len(names)-4)
	}
	return strings.Join(names, ", ")
}
