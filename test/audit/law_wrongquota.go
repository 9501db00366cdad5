package audit

import "fmt"

// wrongQuota compares the quota of each admitted unit with the tree.
func wrongQuota() law {
	return law{
		name: "wrong-quota", doc: "a unit is admitted to the quota group of its namespace in the tree, or to its namespace",
		see: func(s *world, c *change, f *Check) {
			if !c.admitted {
				return
			}
			says, why := c.unit.now.Status.Quota, ""
			switch {
			case s.resourceQuota && says != c.unit.namespace:
				why = "its namespace is " + c.unit.namespace
			case s.resourceQuota:
			case s.trees.now() == nil:
				f.NotChecked++
				return
			default:
				why = s.trees.refusal(c.Time, func(t *tree) []string {
					group, err := t.group(s.place(c.unit))
					switch {
					case err != nil:
						return []string{err.Error()}
					case group.path != says:
						return []string{fmt.Sprintf("its quota in the tree is %q", group.path)}
					}
					return nil
				})
			}
			f.Checked++
			if why != "" {
				f.fail("wrong-quota", c.Moment, c.unit, "it was admitted with status.quota %q, but %s", says, why)
			}
		},
	}
}
