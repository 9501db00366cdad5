package use

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// limitNow is a limit in force.
type limitNow struct {
	quota *model.QuotaHistory
	facts *model.QuotaFacts
	limit *model.QuotaLimit
}

// limitsOf returns the limits of all existing quotas.
func limitsOf(l *model.Ledger) []limitNow {
	var out []limitNow
	for _, q := range l.Quotas {
		facts := q.Now()
		if facts == nil {
			continue
		}
		for i := range facts.Limits {
			out = append(out, limitNow{q, facts, &facts.Limits[i]})
		}
	}
	return out
}

// weigh computes the rates of the current state: the use of each limit, and what waiting
// units could add by first fit.
func (m *meter) weigh(w *model.World) {
	l := w.Ledger(m.use.Namespace)
	limits := limitsOf(l)
	line := m.queued(w, l, limits)
	m.stale, m.waiting, m.rates = false, len(line) > 0, nil
	var reach, allowed []*big.Int
	for _, n := range limits {
		taken, coming := l.Taken(n.facts, n.limit, nil)
		m.rates = append(m.rates, rate{keyOfQuota{n.quota.Name, n.limit.Key}, [3]*big.Int{taken, new(big.Int).Set(taken), new(big.Int).Set(taken)}})
		room := new(big.Int).Sub(n.limit.Hard, taken)
		if n.limit.Unknown {
			room.SetInt64(0) // the API server rejects all pods
		}
		shown := new(big.Int).Sub(n.limit.Hard, n.limit.Used)
		if shown.Sub(shown, coming); room.Cmp(shown) < 0 {
			shown = room
		}
		reach, allowed = append(reach, room), append(allowed, new(big.Int).Set(shown))
	}
	for i, room := range [][]*big.Int{reach, allowed} {
		for _, requested := range line {
			if !fits(requested, room) {
				continue
			}
			for k, n := range requested {
				room[k].Sub(room[k], n)
				m.rates[k].by[i+1].Add(m.rates[k].by[i+1], n)
			}
		}
	}
}

func fits(requested, room []*big.Int) bool {
	for k, n := range requested {
		if n.Sign() > 0 && n.Cmp(room[k]) > 0 {
			return false
		}
	}
	return true
}

// queued returns the requests of all waiting units in the order in which they are tried.
func (m *meter) queued(w *model.World, l *model.Ledger, limits []limitNow) [][]*big.Int {
	var waiting []*model.Unit
	m.until = time.Time{}
	for _, u := range l.Units {
		if waits(w, u, m.last) {
			if !m.requestedBy(u, l, limits).final {
				waiting = append(waiting, u)
			}
		} else if at := u.Facts.Backoff(); m.last.Before(at) && (m.until.IsZero() || at.Before(m.until)) {
			m.until = at
		}
	}
	slices.SortFunc(waiting, func(a, b *model.Unit) int {
		return cmp.Or(cmp.Compare(b.Facts.Priority, a.Facts.Priority), a.Facts.Submitted.Compare(b.Facts.Submitted), cmp.Compare(a.Name, b.Name))
	})
	line := make([][]*big.Int, len(waiting))
	for i, u := range waiting {
		line[i] = m.requested[u].amounts
	}
	return line
}

func (m *meter) requestedBy(u *model.Unit, l *model.Ledger, limits []limitNow) requestOf {
	known, ok := m.requested[u]
	if ok && known.facts == u.Facts && known.changes == l.Changes {
		return known
	}
	asks := requestOf{facts: u.Facts, changes: l.Changes}
	whole := u.Facts.Load()
	for _, n := range limits {
		requested := n.facts.Weigh(n.limit, whole)
		asks.amounts = append(asks.amounts, requested)
		// A quota without a status may allow it later.
		asks.final = asks.final || !n.limit.Unknown && requested.Cmp(n.limit.Hard) > 0 || lacks(u.Facts, n)
	}
	m.requested[u] = asks
	return asks
}

// lacks reports whether containers lack a request that the limit counts: their pods are always
// rejected.
func lacks(u *model.UnitFacts, n limitNow) bool {
	for _, s := range u.Sets {
		if s.Unset[n.limit.Of] != "" && s.Count > 0 && n.facts.Matches(s.Class) {
			return true
		}
	}
	return false
}

// waits reports whether a unit waits for quota.
func waits(w *model.World, u *model.Unit, now time.Time) bool {
	if !u.Gone.IsZero() || !u.Facts.Waits(now) || w.Claims[u.UID] != nil {
		return false
	}
	if q := w.Lines[u.Facts.Queue]; q != nil {
		if stop := q.Orders[len(q.Orders)-1].Stop; stop == "Hold" || stop == "Drain" {
			return false
		}
	}
	j := w.JobOf(u)
	return j == nil || j.Gone.IsZero() && j.Ended.IsZero() && w.Claims[j.UID] == nil
}
