package audit

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// breach is how one version of a ResourceQuota is broken.
type breach struct{ rule, why string }

// seeNamespace holds an admission against every ResourceQuota of its namespace.
func (o *overLimit) seeNamespace(w *world, c *change, f *findings) {
	l := w.ledger(c.opened.place.namespace)
	h := l.holders[c.opened]
	at := c.w.Received
	if at.IsZero() {
		at = c.w.Time
	}
	hidden := w.unseen(l, at, *w.options.PodLag)
	limited := false
	var broken []breach
	for _, q := range l.quotas {
		var first *breach
		versions := q.within(c.w.Time, *w.options.TreeLag)
		for i, version := range versions {
			if version == nil || version.bad != "" || len(version.limits) == 0 {
				first = nil
				break
			}
			limited = true
			b := breachOf(l, q.name, version, h, hidden)
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
		f.Judged++
	}
	for _, b := range broken {
		f.fail(b.rule, c.w.moment(), c.opened, "%s", b.why)
	}
}

// breachOf tells how the claim of a holder, when it opened, broke a quota; nil when it
// did not.
func breachOf(l *ledger, name string, q *quotaFacts, h *holder, hidden map[*holder]load) *breach {
	var parts []string
	for i := range q.limits {
		limit := &q.limits[i]
		asked := q.weigh(limit, h.charged)
		if asked.Sign() <= 0 {
			continue
		}
		if limit.unknown {
			return &breach{"no-status", fmt.Sprintf("ResourceQuota %s has no status for %s: no pod can be created", name, limit.key)}
		}
		total, _ := l.taken(q, limit, hidden)
		if total.Cmp(limit.hard) > 0 {
			before := new(big.Int).Sub(total, asked)
			parts = append(parts, fmt.Sprintf("%s used %s + asked %s is above the limit %s (held by %s)", limit.key,
				figure(limit.key, before), figure(limit.key, asked), figure(limit.key, limit.hard), few(takers(l, q, limit, h, hidden))))
		}
	}
	if parts == nil {
		return nil
	}
	return &breach{"over-limit", fmt.Sprintf("ResourceQuota %s: %s", name, strings.Join(parts, "; "))}
}

// takers names who takes of a limit: pods of others, then claims, the latest first.
func takers(l *ledger, q *quotaFacts, limit *quotaLimit, except *holder, hidden map[*holder]load) []string {
	var claims []*claim
	for held, h := range l.holders {
		if h != except && (q.weigh(limit, h.charged).Sign() > 0 || q.weigh(limit, h.pods).Sign() > 0) {
			claims = append(claims, held)
		}
	}
	slices.SortFunc(claims, func(a, b *claim) int {
		return cmp.Or(cmp.Compare(b.opened.Revision, a.opened.Revision), cmp.Compare(a.key, b.key))
	})
	others := q.weigh(limit, l.others)
	others.Sub(others, q.weigh(limit, hidden[nil]))
	var names []string
	if others.Sign() > 0 {
		names = append(names, fmt.Sprintf("%s by pods of others", figure(limit.key, others)))
	}
	for _, held := range claims {
		names = append(names, held.String())
	}
	return names
}
