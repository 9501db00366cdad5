package audit

import (
	"fmt"
	"strings"
)

// wrongQuota compares the quota of each admitted unit with the tree.
func wrongQuota() law {
	return law{
		name: "wrong-quota", doc: "a unit is admitted to the quota group of its namespace in the tree, or to its namespace",
		see: func(s *world, c *change, f *Check) {
			if !c.admitted {
				return
			}
			says := c.unit.now.Status.Quota
			trees := s.trees.within(c.Time)
			switch {
			case s.resourceQuota:
				if f.Checked++; says != c.unit.namespace {
					f.fail("wrong-quota", c.Moment, c.unit, "it was admitted with status.quota %q, but its namespace is %s", says, c.unit.namespace)
				}
				return
			case len(trees) == 0:
				f.NotChecked++
				return
			}
			f.Checked++
			var right []string
			for _, t := range trees {
				group, err := t.group(s.place(c.unit))
				switch {
				case err != nil:
					right = append(right, err.Error())
				case group.path == says:
					return
				default:
					right = append(right, fmt.Sprintf("its quota in the tree is %q", group.path))
				}
			}
			f.fail("wrong-quota", c.Moment, c.unit, "it was admitted with status.quota %q, but %s", says, strings.Join(right, ", previously "))
		},
	}
}
