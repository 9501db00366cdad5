package checks

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// breach describes how an admission violates a version of a ResourceQuota.
type breach struct{ rule, why string }

// seeNamespace checks an admission against every ResourceQuota of its namespace.
func (o *overLimit) seeNamespace(w *model.World, c *model.Change, f *findings) {
	l := w.Ledger(c.Opened.Place.Namespace)
	h := l.Holders[c.Opened]
	at := c.Write.Received
	if at.IsZero() {
		at = c.Write.Time
	}
	hidden := w.Unseen(l, at, *w.Options.PodLag)
	limited := false
	var broken []breach
	for _, q := range l.Quotas {
		var first *breach
		versions := q.Within(c.Write.Time, *w.Options.TreeLag)
		for i, version := range versions {
			if version == nil || version.Bad != "" || len(version.Limits) == 0 {
				first = nil
				break
			}
			limited = true
			b := breachOf(l, q.Name, version, h, hidden)
			if b == nil {
				first = nil
				break
			}
			if i == 0 {
				first = b
			}
		}
		if first != nil {
			broken = append(broken, *first)
		}
	}
	if limited {
		f.Checked++
	}
	for _, b := range broken {
		f.fail(b.rule, c.Write.Moment(), c.Opened, "%s", b.why)
	}
}

// breachOf returns how the claim of a holder violated a quota when it opened; nil if it did
// not.
func breachOf(l *model.Ledger, name string, q *model.QuotaFacts, h *model.Holder, hidden map[*model.Holder]model.Load) *breach {
	var parts []string
	for i := range q.Limits {
		limit := &q.Limits[i]
		asked := q.Weigh(limit, h.Charged)
		if asked.Sign() <= 0 {
			continue
		}
		if limit.Unknown {
			return &breach{"no-status", fmt.Sprintf("ResourceQuota %s has no status for %s, so no pod can be created", name, limit.Key)}
		}
		total, _ := l.Taken(q, limit, hidden)
		if total.Cmp(limit.Hard) > 0 {
			before := new(big.Int).Sub(total, asked)
			parts = append(parts, fmt.Sprintf("%s used %s + requested %s exceeds the limit %s (held by %s)", limit.Key,
				model.Figure(limit.Key, before), model.Figure(limit.Key, asked), model.Figure(limit.Key, limit.Hard), few(takers(l, q, limit, h, hidden))))
		}
	}
	if parts == nil {
		return nil
	}
	return &breach{"over-limit", fmt.Sprintf("ResourceQuota %s: %s", name, strings.Join(parts, "; "))}
}

// takers lists what counts against a limit: other pods, then claims, the latest first.
func takers(l *model.Ledger, q *model.QuotaFacts, limit *model.QuotaLimit, except *model.Holder, hidden map[*model.Holder]model.Load) []string {
	var claims []*model.Claim
	for held, h := range l.Holders {
		if h != except && (q.Weigh(limit, h.Charged).Sign() > 0 || q.Weigh(limit, h.Pods).Sign() > 0) {
			claims = append(claims, held)
		}
	}
	slices.SortFunc(claims, func(a, b *model.Claim) int {
		return cmp.Or(cmp.Compare(b.Opened.Revision, a.Opened.Revision), cmp.Compare(a.Key, b.Key))
	})
	others := q.Weigh(limit, l.Others)
	others.Sub(others, q.Weigh(limit, hidden[nil]))
	var names []string
	if others.Sign() > 0 {
		names = append(names, fmt.Sprintf("%s by other pods", model.Figure(limit.Key, others)))
	}
	for _, held := range claims {
		names = append(names, held.String())
	}
	return names
}
