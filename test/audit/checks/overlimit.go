package checks

import (
	"fmt"
	"strings"

	"kube-queue.dev/kube-queue/test/audit/state"
)

// overLimit sums at each admission what the units that hold quota request, or what their pods request if
// that is more.
type overLimit struct{ admissions int }

func newOverLimit() inspector { return &overLimit{} }

func (o *overLimit) see(s *state.State, c *state.Change, f *findings) {
	if !c.Admitted || !s.Holds(c.Unit) {
		return // or its job is over, so it charges nothing
	}
	o.admissions++
	if c.Unit.Facts.Bad != "" {
		f.fail("unreadable", c.Write.Moment(), holder(c), "it was admitted, but its request cannot be read: %s", c.Unit.Facts.Bad)
	}
	if s.Options.ResourceQuota {
		seeNamespace(s, c, f)
		return
	}
	seeTree(s, c, f)
}

// seeTree checks an admission against the versions of the tree that may justify it. The pods that count are
// those that the controller must have seen.
func seeTree(s *state.State, c *state.Change, f *findings) {
	trees := s.Trees.Within(c.Write.Time)
	if len(trees) == 0 {
		return // reported at the end: the cluster may use another backend
	}
	f.Checked++
	at := requested(c.Write)
	charges := s.Charges("", func(p *state.Pod) bool { return state.Requesting(p) && !s.Unseen(p, at, *s.Options.PodLag) })
	var broken []string
	for _, t := range trees {
		why := usageOf(s, t, charges).excess(s, c.Unit)
		if why == "" {
			return
		}
		broken = append(broken, why)
	}
	f.fail("over-limit", c.Write.Moment(), holder(c), "%s", strings.Join(broken, "; it did not fit in the previous tree either: "))
}

// holder returns the job of an admitted unit, or the unit if it has none.
func holder(c *state.Change) fmt.Stringer {
	if c.Job != nil {
		return c.Job
	}
	return c.Unit
}

func (o *overLimit) finish(s *state.State, f *findings) {
	f.NotChecked = o.admissions - f.Checked
	switch {
	case f.NotChecked > 0 && s.Options.ResourceQuota:
		f.note("%d admissions were in namespaces without a readable ResourceQuota that limits pods", f.NotChecked)
	case f.NotChecked > 0 && s.Trees.Changes > 0:
		f.note("%d admissions happened before the first valid quota tree", f.NotChecked)
	case f.NotChecked > 0:
		f.note("the log contains no valid quota tree, so limits are not checked")
	}
}

// seeGroup compares the quota of each admitted unit with the tree.
func seeGroup(s *state.State, c *state.Change, f *findings) {
	if !c.Admitted {
		return
	}
	says := c.Unit.Facts.Quota
	if s.Options.ResourceQuota {
		if f.Checked++; says != c.Unit.Namespace {
			f.fail("wrong-quota", c.Write.Moment(), c.Unit, "it was admitted with status.quota %q, but its namespace is %s", says, c.Unit.Namespace)
		}
		return
	}
	trees := s.Trees.Within(c.Write.Time)
	if len(trees) == 0 {
		f.NotChecked++
		return
	}
	f.Checked++
	var right []string
	for _, t := range trees {
		group, err := t.Group(s.Place(c.Unit))
		switch {
		case err != nil:
			right = append(right, err.Error())
		case group.Path == says:
			return
		default:
			right = append(right, fmt.Sprintf("its quota in the tree is %q", group.Path))
		}
	}
	f.fail("wrong-quota", c.Write.Moment(), c.Unit, "it was admitted with status.quota %q, but %s", says, strings.Join(right, ", previously "))
}
