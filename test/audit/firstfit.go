package audit

import (
	"cmp"
	"math/big"
	"slices"
	"time"
)

// limitNow is a limit in force.
type limitNow struct {
	quota *quotaHistory
	facts *quotaFacts
	limit *quotaLimit
}

// limitsOf are those of all quotas that are there.
func limitsOf(l *ledger) []limitNow {
	var out []limitNow
	for _, q := range l.quotas {
		facts := q.now()
		if facts == nil {
			continue
		}
		for i := range facts.limits {
			out = append(out, limitNow{q, facts, &facts.limits[i]})
		}
	}
	return out
}

// weigh finds the rates of the state as it is: what is used of each limit, and what
// the units that wait could add, by first fit.
func (m *meter) weigh(w *world) {
	l := w.ledger(m.use.Namespace)
	limits := limitsOf(l)
	line := m.line(w, l, limits)
	m.stale, m.waiting, m.rates = false, len(line) > 0, nil
	var reach, allowed []*big.Int
	for _, n := range limits {
		taken, coming := l.taken(n.facts, n.limit, nil)
		m.rates = append(m.rates, rate{keyOfQuota{n.quota.name, n.limit.key}, [3]*big.Int{taken, new(big.Int).Set(taken), new(big.Int).Set(taken)}})
		room := new(big.Int).Sub(n.limit.hard, taken)
		if n.limit.unknown {
			room.SetInt64(0) // the API server refuses all pods
		}
		shown := new(big.Int).Sub(n.limit.hard, n.limit.used)
		if shown.Sub(shown, coming); room.Cmp(shown) < 0 {
			shown = room
		}
		reach, allowed = append(reach, room), append(allowed, new(big.Int).Set(shown))
	}
	for i, room := range [][]*big.Int{reach, allowed} {
		for _, asked := range line {
			if !fits(asked, room) {
				continue
			}
			for k, n := range asked {
				room[k].Sub(room[k], n)
				m.rates[k].by[i+1].Add(m.rates[k].by[i+1], n)
			}
		}
	}
}

func fits(asked, room []*big.Int) bool {
	for k, n := range asked {
		if n.Sign() > 0 && n.Cmp(room[k]) > 0 {
			return false
		}
	}
	return true
}

// line holds what each unit that waits asks for, in the order in which they are tried.
func (m *meter) line(w *world, l *ledger, limits []limitNow) [][]*big.Int {
	var waiting []*unit
	m.until = time.Time{}
	for _, u := range l.units {
		if waits(w, u, m.last) {
			if !m.askedBy(u, l, limits).final {
				waiting = append(waiting, u)
			}
		} else if at := u.facts.requeueAt; u.facts.phase == backoff && m.last.Before(at) && (m.until.IsZero() || at.Before(m.until)) {
			m.until = at
		}
	}
	slices.SortFunc(waiting, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(b.facts.priority, a.facts.priority), a.facts.submitted.Compare(b.facts.submitted), cmp.Compare(a.name, b.name))
	})
	line := make([][]*big.Int, len(waiting))
	for i, u := range waiting {
		line[i] = m.asked[u].amounts
	}
	return line
}

func (m *meter) askedBy(u *unit, l *ledger, limits []limitNow) askedOf {
	known, ok := m.asked[u]
	if ok && known.facts == u.facts && known.changes == l.changes {
		return known
	}
	asks := askedOf{facts: u.facts, changes: l.changes}
	whole := u.facts.load()
	for _, n := range limits {
		asked := n.facts.weigh(n.limit, whole)
		asks.amounts = append(asks.amounts, asked)
		// A quota without a status may still come to allow it.
		asks.final = asks.final || !n.limit.unknown && asked.Cmp(n.limit.hard) > 0 || lacks(u.facts, n)
	}
	m.asked[u] = asks
	return asks
}

// lacks tells whether containers say nothing of what the limit counts of them: their
// pods are never taken.
func lacks(u *unitFacts, n limitNow) bool {
	for _, s := range u.sets {
		if s.unset[n.limit.of] != "" && s.count > 0 && n.facts.matches(s.class) {
			return true
		}
	}
	return false
}

// waits tells whether a unit asks for quota and has none.
func waits(w *world, u *unit, now time.Time) bool {
	if !u.gone.IsZero() || !u.facts.inLine(now) || w.claims[u.uid] != nil {
		return false
	}
	if q := w.lines[u.facts.queue]; q != nil {
		if stop := q.orders[len(q.orders)-1].stop; stop == "Hold" || stop == "Drain" {
			return false
		}
	}
	j := w.jobOf(u)
	return j == nil || j.gone.IsZero() && j.ended.IsZero() && w.claims[j.uid] == nil
}
