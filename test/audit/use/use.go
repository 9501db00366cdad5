// Package use measures from an audit log how well ResourceQuotas were used while jobs waited:
// the use of each limit compared with the use that first fit could have reached.
package use

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// QuotaUse describes how well the ResourceQuotas of one namespace were used while jobs waited
// there, from the first admission until no unit waits any more.
type QuotaUse struct {
	Namespace  string    `json:"namespace"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Admissions int       `json:"admissions"`
	// Waited is the part of that time during which units waited.
	Waited time.Duration `json:"waited"`
	Keys   []KeyUse      `json:"keys"`
}

// KeyUse is the use of one key of one ResourceQuota, as integrals over time: base units
// (thousandths of cpu, whole units of other resources) times nanoseconds.
type KeyUse struct {
	Quota string `json:"quota"`
	Key   string `json:"key"`
	// Used is the use by claims, or by their pods if that is more, and by other pods.
	Used *big.Int `json:"used"`
	// Reach is Used plus what first fit over the waiting units, ordered by priority and
	// arrival, could add within the hard limit.
	Reach *big.Int `json:"reach"`
	// Allowed is the same within the limits of the API server, which uses the status of the
	// quota. The status may be behind.
	Allowed *big.Int `json:"allowed"`
}

// Ratio returns Used divided by Reach: 1 if no waiting unit would have fitted at any time.
func (k KeyUse) Ratio() float64 { return ratio(k.Used, k.Reach) }

// AllowedRatio returns Used divided by Allowed.
func (k KeyUse) AllowedRatio() float64 { return ratio(k.Used, k.Allowed) }

func ratio(used, reach *big.Int) float64 {
	if reach.Sign() == 0 {
		return 1
	}
	f, _ := new(big.Rat).SetFrac(used, reach).Float64()
	return f
}

// Ratio returns the lowest ratio of all keys.
func (u QuotaUse) Ratio() float64 { return u.lowest(KeyUse.Ratio) }

// AllowedRatio returns the lowest allowed ratio of all keys.
func (u QuotaUse) AllowedRatio() float64 { return u.lowest(KeyUse.AllowedRatio) }

func (u QuotaUse) lowest(of func(KeyUse) float64) float64 {
	least := 1.0
	for _, k := range u.Keys {
		least = min(least, of(k))
	}
	return least
}

func (u QuotaUse) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "namespace %s: %d admissions, units waited %s of %s", u.Namespace, u.Admissions,
		u.Waited.Round(time.Millisecond), u.To.Sub(u.From).Round(time.Millisecond))
	for _, k := range u.Keys {
		fmt.Fprintf(&b, "\n  %s %s: %.2f%% of what first fit could reach, %.2f%% of what the API server allowed of that",
			k.Quota, k.Key, 100*k.Ratio(), 100*k.AllowedRatio())
	}
	return b.String()
}

// Of measures how well ResourceQuotas were used, in the given namespaces, or without any in
// all namespaces with admissions under a ResourceQuota. It assumes the backend resourcequota,
// regardless of the options.
func Of(l *model.Log, options model.Options, namespaces ...string) ([]QuotaUse, error) {
	options.ResourceQuota = true
	o, err := options.Complete()
	if err != nil {
		return nil, err
	}
	w := model.NewWorld(o, l.End(o))
	meters := map[string]*meter{}
	for _, write := range l.Writes {
		seeAll := write.Resource == "queues" // they may stop any namespace
		if seeAll {
			for _, m := range meters {
				m.advance(w, write.Time)
			}
		} else if m := meters[write.Namespace]; m != nil {
			m.advance(w, write.Time)
		}
		c := w.Apply(write)
		if meters[write.Namespace] == nil {
			meters[write.Namespace] = newMeter(write)
		}
		meters[write.Namespace].see(c)
		if seeAll {
			for _, m := range meters {
				m.stale = true
			}
		}
	}
	var all []QuotaUse
	for _, namespace := range slices.Sorted(maps.Keys(meters)) {
		m := meters[namespace]
		m.advance(w, w.End)
		if use := m.total(); len(use.Keys) > 0 && (len(namespaces) == 0 || slices.Contains(namespaces, namespace)) {
			all = append(all, use)
		}
	}
	for _, namespace := range namespaces {
		if !slices.ContainsFunc(all, func(u QuotaUse) bool { return u.Namespace == namespace }) {
			return nil, fmt.Errorf("the log contains no unit that waits under a ResourceQuota in namespace %s after the first admission there", namespace)
		}
	}
	return all, nil
}

// meter integrates the use of one namespace.
type meter struct {
	use  QuotaUse
	last time.Time
	// stale reports whether the rates must be computed again.
	stale bool
	// until is when the rates change without a write, because the backoff of a unit ends.
	// Zero: never.
	until   time.Time
	waiting bool
	rates   []rate
	// sums are the integrals until a unit last waited, pending those since then.
	sums, pending map[keyOfQuota]*[3]big.Int
	requested     map[*model.Unit]requestOf
	waited        time.Duration
}

type keyOfQuota struct{ quota, key string }

// rate is the current growth of the integrals of a key: used, reach and allowed.
type rate struct {
	of keyOfQuota
	by [3]*big.Int
}

// requestOf is the request of a unit for each limit, while neither the unit nor the quotas
// change.
type requestOf struct {
	facts   *model.UnitFacts
	changes int
	amounts []*big.Int
	final   bool // it can never fit
}

func newMeter(first *model.Write) *meter {
	return &meter{use: QuotaUse{Namespace: first.Namespace}, last: first.Time, stale: true,
		sums: map[keyOfQuota]*[3]big.Int{}, pending: map[keyOfQuota]*[3]big.Int{}, requested: map[*model.Unit]requestOf{}}
}

// see starts at the first admission.
func (m *meter) see(c *model.Change) {
	m.stale = m.stale || c.Event == nil && c.Write.OK()
	if c.Opened == nil {
		return
	}
	if m.use.Admissions++; m.use.Admissions == 1 {
		m.use.From = m.last
		m.use.To = m.last
	}
}

// advance integrates until the given time with the state before it.
func (m *meter) advance(w *model.World, now time.Time) {
	for m.use.Admissions > 0 && m.last.Before(now) {
		if m.stale || !m.until.IsZero() && !m.last.Before(m.until) {
			m.weigh(w)
		}
		next := now
		if !m.until.IsZero() && m.until.Before(now) {
			next = m.until
		}
		m.integrate(next)
	}
	if m.last.Before(now) {
		m.last = now
	}
}

func (m *meter) integrate(next time.Time) {
	span := next.Sub(m.last)
	m.last = next
	for _, r := range m.rates {
		sum := m.pending[r.of]
		if sum == nil {
			sum = &[3]big.Int{}
			m.pending[r.of] = sum
		}
		for i, n := range r.by {
			sum[i].Add(&sum[i], new(big.Int).Mul(n, big.NewInt(int64(span))))
		}
	}
	if !m.waiting {
		return
	}
	m.use.To = next
	m.waited += span
	for of, more := range m.pending {
		sum := m.sums[of]
		if sum == nil {
			sum = &[3]big.Int{}
			m.sums[of] = sum
		}
		for i := range sum {
			sum[i].Add(&sum[i], &more[i])
		}
	}
	clear(m.pending)
}

func (m *meter) total() QuotaUse {
	m.use.Waited = m.waited
	for of, sum := range m.sums {
		m.use.Keys = append(m.use.Keys, KeyUse{of.quota, of.key, &sum[0], &sum[1], &sum[2]})
	}
	slices.SortFunc(m.use.Keys, func(a, b KeyUse) int {
		return cmp.Or(cmp.Compare(a.Quota, b.Quota), cmp.Compare(a.Key, b.Key))
	})
	return m.use
}
