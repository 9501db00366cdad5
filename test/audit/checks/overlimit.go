package checks

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// overLimit recomputes the use of quota at each admission.
type overLimit struct{ admissions int }

func newOverLimit() inspector { return &overLimit{} }

func (o *overLimit) see(w *model.World, c *model.Change, f *findings) {
	if c.Opened == nil {
		return
	}
	if slices.Contains(c.Closed, c.Opened) {
		return // its job had ended or was deleted, so it charges nothing
	}
	o.admissions++
	if w.Options.ResourceQuota {
		o.seeNamespace(w, c, f)
		return
	}
	ruling := w.Forest.Ruling(c.Write.Time, *w.Options.TreeLag)
	if len(ruling) == 0 {
		return // reported at the end: the cluster may use another backend
	}
	f.Checked++
	why := ""
	for i, r := range ruling {
		broken := excess(w, r, c.Opened, nil, nil)
		if broken == "" {
			return
		}
		if i == 0 {
			why = broken
		}
	}
	if len(ruling) > 1 {
		why += fmt.Sprintf("; it did not fit in the previous tree either, which was in force until %s", ruling[1].To.UTC().Format("15:04:05.000"))
	}
	f.fail("over-limit", c.Write.Moment(), c.Opened, "%s", why)
}

func (o *overLimit) finish(w *model.World, f *findings) {
	f.NotChecked = o.admissions - f.Checked
	switch {
	case f.NotChecked > 0 && w.Options.ResourceQuota:
		f.note("%d admissions were in namespaces without a readable ResourceQuota that limits pods", f.NotChecked)
	case f.NotChecked > 0 && w.Forest.Changes > 0:
		f.note("%d admissions happened before the first valid quota tree", f.NotChecked)
	case f.NotChecked > 0:
		f.note("the log contains no valid quota tree, so limits are not checked")
	}
}

// excess returns the limits that a claim exceeded when it opened, or an empty text. What is above, by
// node, is charged in addition to the claims, because of the growths.
func excess(w *model.World, r *model.Reign, held *model.Claim, above map[*model.Node]model.Amounts, growths []model.Growth) string {
	used := w.UsageOf(r)
	var parts []string
	for n := used.Node(held.Place); n != nil; n = n.Parent {
		for _, name := range (model.Amounts{model.MaxJobs: nil}).Names(held.Asked) {
			asks := big.NewInt(1)
			if name != model.MaxJobs {
				asks = held.Asked.Get(name)
			}
			limit, limited := n.Limit(name, w.Options.OversellRate)
			if !limited || asks.Sign() <= 0 {
				continue
			}
			if total := new(big.Int).Add(used.Taken[n].Get(name), above[n].Get(name)); total.Cmp(limit) > 0 {
				before := new(big.Int).Sub(total, asks)
				parts = append(parts, fmt.Sprintf("node %s: %s used %s + requested %s exceeds the limit %s (held by %s%s)",
					n.Path, name, model.Figure(name, before), model.Figure(name, asks), model.Figure(name, limit),
					few(w.Holders(used, n, held)), byPods(used, n, name, growths)))
			}
		}
	}
	return strings.Join(parts, "; ")
}

// byPods lists how much of a resource is used at a node because of pods, in addition to what was
// admitted.
func byPods(used *model.Usage, n *model.Node, name string, growths []model.Growth) string {
	var parts []string
	for _, g := range growths {
		if g.Above.Get(name).Sign() > 0 && slices.Contains(used.Nodes(g.Charge), n) {
			parts = append(parts, fmt.Sprintf("%s of %s", model.Figure(name, g.Above.Get(name)), g.Charge))
		}
	}
	if parts == nil {
		return ""
	}
	return "; pods in addition to what was admitted: " + few(parts)
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

// wrongQuota compares the quota of each admitted unit with the tree.
type wrongQuota struct{}

func newWrongQuota() inspector { return wrongQuota{} }

func (wrongQuota) see(w *model.World, c *model.Change, f *findings) {
	if c.Opened == nil || c.Unit == nil {
		return
	}
	says := c.Unit.Facts.Quota
	if w.Options.ResourceQuota {
		if f.Checked++; says != c.Unit.Namespace {
			f.fail("wrong-quota", c.Write.Moment(), c.Unit, "it was admitted with status.quota %q, but its namespace is %s", says, c.Unit.Namespace)
		}
		return
	}
	ruling := w.Forest.Ruling(c.Write.Time, *w.Options.TreeLag)
	if len(ruling) == 0 {
		f.NotChecked++
		return
	}
	f.Checked++
	var right []string
	for _, r := range ruling {
		group, err := r.Tree.Group(c.Opened.Place.Namespace, c.Opened.Place.QuotaName)
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

func (wrongQuota) finish(*model.World, *findings) {}
