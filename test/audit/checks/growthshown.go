package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// growthShown follows the nodes of the quota tree that are above their max because jobs have more pods
// than were admitted. Pods that are being deleted do not count. Such a node must show it by the
// condition OverQuota, of a unit whose pods request more than was admitted or of the tree. A node below
// which no such unit holds quota, and one that what was admitted alone puts above its max, are not
// checked.
type growthShown struct{ hidden map[string]*hidden } // by the path of the node

// hidden is a node that is above its max and does not show it.
type hidden struct {
	since    facts.Moment
	why      string
	reported bool
}

// A node must show after growthLasts that it is above its max. growthDelay is the time in which the
// controller sees a pod and writes the condition; it writes the status of a tree every 5 s.
const (
	growthLasts = 10 * time.Second
	growthDelay = 5 * time.Second
)

func newGrowthShown() inspector { return &growthShown{map[string]*hidden{}} }

func (g *growthShown) see(s *state.State, c *state.Change, f *findings) {
	g.expire(c.Write.Received, f) // it was stored at that time or later
	if c.Event != nil {
		return
	}
	now := c.Write.Moment()
	above := aboveMax(s, now.Time)
	maps.DeleteFunc(g.hidden, func(path string, _ *hidden) bool { return above[path] == "" })
	for path, why := range above {
		if g.hidden[path] == nil {
			g.hidden[path] = &hidden{since: now, why: why}
			f.Checked++
		}
	}
}

func (g *growthShown) finish(s *state.State, f *findings) { g.expire(s.End, f) }

func (g *growthShown) expire(now time.Time, f *findings) {
	for _, path := range slices.Sorted(maps.Keys(g.hidden)) {
		h := g.hidden[path]
		if !h.reported && now.Sub(h.since.Time) > growthLasts+growthDelay {
			h.reported = true
			f.fail("growth-not-shown", h.since, named("node "+path), "%s, and nothing showed it by the condition OverQuota for more than %s", h.why, growthLasts+growthDelay)
		}
	}
}

// aboveMax returns the nodes that are above their max because of pods and do not show it, with an
// explanation.
func aboveMax(s *state.State, now time.Time) map[string]string {
	tree, counts := s.Trees.Now(), s.Trees.Oldest()
	if tree == nil || counts != nil && counts.Shown.OverQuota() {
		return nil
	}
	used := usageOf(s, tree, s.Charges("", func(p *state.Pod) bool {
		return state.Requesting(p) && !p.Deleting && !s.Unseen(p, now, 0)
	}))
	nodes := map[string]string{}
	for _, n := range tree.Nodes {
		var why []string
		for _, name := range used.grown[n].Names() {
			limit, limited := n.Limit(name, s.Options.OversellRate)
			admitted := used.admitted[n][name]
			if total := admitted + used.grown[n][name]; limited && admitted <= limit && total > limit && !used.shown(n, name) {
				why = append(why, fmt.Sprintf("%s used %s exceeds the limit %s (%s)", name, facts.Figure(name, total), facts.Figure(name, limit), used.users(n, name, nil)))
			}
		}
		if why != nil {
			nodes[n.Path] = strings.Join(why, "; ")
		}
	}
	return nodes
}

// shown reports whether a unit below the node shows that it is above its max, or none can.
func (u *usage) shown(n *facts.Node, name string) bool {
	none := true
	for _, c := range u.charges[n] {
		if len(c.Holding) == 0 || c.Grown()[name] <= 0 {
			continue
		}
		if none = false; c.Unit.Facts.OverQuota {
			return true
		}
	}
	return none
}
