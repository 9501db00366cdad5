package audit

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// overLimit recomputes the use of quota at each admission.
type overLimit struct{ admissions int }

func newOverLimit() inspector { return &overLimit{} }

func (o *overLimit) see(w *world, c *change, f *findings) {
	if c.opened == nil {
		return
	}
	if slices.Contains(c.closed, c.opened) {
		return // its job had ended or was gone: it takes nothing
	}
	o.admissions++
	if w.options.ResourceQuota {
		o.seeNamespace(w, c, f)
		return
	}
	ruling := w.forest.ruling(c.w.Time, *w.options.TreeLag)
	if len(ruling) == 0 {
		return // told at the end: the quota may be of another backend
	}
	f.Judged++
	why := ""
	for i, r := range ruling {
		broken := excess(w, r, c.opened)
		if broken == "" {
			return
		}
		if i == 0 {
			why = broken
		}
	}
	if len(ruling) > 1 {
		why += fmt.Sprintf("; nor did it fit the tree before, in force until %s", ruling[1].to.UTC().Format("15:04:05.000"))
	}
	f.fail("over-limit", c.w.moment(), c.opened, "%s", why)
}

func (o *overLimit) finish(w *world, f *findings) {
	f.NotJudged = o.admissions - f.Judged
	switch {
	case f.NotJudged > 0 && w.options.ResourceQuota:
		f.note("%d admissions came where no ResourceQuota that can be read limits pods", f.NotJudged)
	case f.NotJudged > 0 && w.forest.changes > 0:
		f.note("%d admissions came before any valid quota tree", f.NotJudged)
	case f.NotJudged > 0:
		f.note("the log holds no valid quota tree: limits are not checked")
	}
}

// excess tells which limits a claim broke when it opened, or nothing.
func excess(w *world, r *reign, held *claim) string {
	used := w.usageOf(r)
	var parts []string
	for n := used.node(held.place); n != nil; n = n.parent {
		for _, name := range (amounts{maxJobs: nil}).names(held.asked) {
			asks := big.NewInt(1)
			if name != maxJobs {
				asks = held.asked.get(name)
			}
			limit, limited := n.limit(name, w.options.oversell)
			if !limited || asks.Sign() <= 0 {
				continue
			}
			if total := used.taken[n].get(name); total.Cmp(limit) > 0 {
				before := new(big.Int).Sub(total, asks)
				parts = append(parts, fmt.Sprintf("node %s: %s used %s + asked %s is above the limit %s (held by %s)",
					n.path, name, figure(name, before), figure(name, asks), figure(name, limit), few(w.holders(used, n, held))))
			}
		}
	}
	return strings.Join(parts, "; ")
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

// wrongQuota compares the group of each admitted unit with the tree's.
type wrongQuota struct{}

func newWrongQuota() inspector { return wrongQuota{} }

func (wrongQuota) see(w *world, c *change, f *findings) {
	if c.opened == nil || c.unit == nil {
		return
	}
	says := c.unit.facts.quota
	if w.options.ResourceQuota {
		if f.Judged++; says != c.unit.namespace {
			f.fail("wrong-quota", c.w.moment(), c.unit, "admitted with status.quota %q, but its namespace is %s", says, c.unit.namespace)
		}
		return
	}
	ruling := w.forest.ruling(c.w.Time, *w.options.TreeLag)
	if len(ruling) == 0 {
		f.NotJudged++
		return
	}
	f.Judged++
	var right []string
	for _, r := range ruling {
		group, err := r.tree.group(c.opened.place.namespace, c.opened.place.quotaName)
		switch {
		case err != nil:
			right = append(right, err.Error())
		case group.path == says:
			return
		default:
			right = append(right, fmt.Sprintf("the tree says %q", group.path))
		}
	}
	f.fail("wrong-quota", c.w.moment(), c.unit, "admitted with status.quota %q, but %s", says, strings.Join(right, ", before it "))
}

func (wrongQuota) finish(*world, *findings) {}
