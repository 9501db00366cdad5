package checks

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// growthShown follows the nodes of the quota tree that are above their max because jobs have more pods
// than were admitted. Pods that are being deleted do not count. Such a node must show it by the
// condition OverQuota, of a unit whose pods request more than was admitted or of the tree. A node below
// which no such unit holds quota, and one that what was admitted alone puts above its max, are not
// checked.
type growthShown struct{ hidden map[string]*hidden } // by the path of the node

// hidden is a node that is above its max and does not show it.
type hidden struct {
	since    model.Moment
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

func (g *growthShown) see(w *model.World, c *model.Change, f *findings) {
	g.expire(c.Write.Received, f) // it was stored at that time or later
	if c.Event == nil {
		g.follow(w, c.Write.Moment(), f)
	}
}

func (g *growthShown) finish(w *model.World, f *findings) { g.expire(w.End, f) }

func (g *growthShown) follow(w *model.World, now model.Moment, f *findings) {
	above := aboveMax(w, now.Time)
	maps.DeleteFunc(g.hidden, func(path string, _ *hidden) bool { return above[path] == "" })
	for path, why := range above {
		if g.hidden[path] == nil {
			g.hidden[path] = &hidden{since: now, why: why}
			f.Checked++
		}
	}
}

func (g *growthShown) expire(now time.Time, f *findings) {
	for _, path := range slices.Sorted(maps.Keys(g.hidden)) {
		h := g.hidden[path]
		if h.reported || now.Sub(h.since.Time) <= growthLasts+growthDelay {
			continue
		}
		h.reported = true
		f.fail("growth-not-shown", h.since, named("node "+path), "%s, and nothing showed it by the condition OverQuota for more than %s", h.why, growthLasts+growthDelay)
	}
}

// aboveMax returns the nodes that are above their max because of pods and do not show it, with an
// explanation.
func aboveMax(w *model.World, now time.Time) map[string]string {
	reigns := w.Forest.Reigns
	if len(reigns) == 0 {
		return nil
	}
	if counts := w.Forest.Oldest(); counts != nil && counts.Shown.OverQuota() {
		return nil
	}
	used := w.UsageOf(reigns[len(reigns)-1])
	if !slices.ContainsFunc(used.Tree.Nodes, func(n *model.Node) bool { return len(exceeded(w, used, n, used.Grown[n])) > 0 }) {
		return nil // even if all pods count
	}
	growths := w.Growths(w.Lasting(now))
	above := used.Above(growths)
	nodes := map[string]string{}
	for _, n := range used.Tree.Nodes {
		var why []string
		for _, name := range exceeded(w, used, n, above[n]) {
			if !shown(used, n, name, growths) {
				total := new(big.Int).Add(used.Taken[n].Get(name), above[n].Get(name))
				limit, _ := n.Limit(name, w.Options.OversellRate)
				why = append(why, fmt.Sprintf("%s used %s exceeds the limit %s%s", name, model.Figure(name, total), model.Figure(name, limit), byPods(used, n, name, growths)))
			}
		}
		if why != nil {
			nodes[n.Path] = strings.Join(why, "; ")
		}
	}
	return nodes
}

// exceeded returns the resources whose use at a node is within its max only without what is above.
func exceeded(w *model.World, used *model.Usage, n *model.Node, above model.Amounts) []string {
	var names []string
	for _, name := range above.Names(nil) {
		limit, limited := n.Limit(name, w.Options.OversellRate)
		admitted := used.Taken[n].Get(name)
		if limited && admitted.Cmp(limit) <= 0 && new(big.Int).Add(admitted, above.Get(name)).Cmp(limit) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// shown reports whether a unit below the node shows that it is above its max, or none can.
func shown(used *model.Usage, n *model.Node, name string, growths []model.Growth) bool {
	none := true
	for _, g := range growths {
		if g.Claim == nil || !g.Unit.Exists() || g.Above.Get(name).Sign() <= 0 || !slices.Contains(used.Nodes(g.Charge), n) {
			continue
		}
		if none = false; g.Unit.Facts.OverQuota {
			return true
		}
	}
	return none
}
