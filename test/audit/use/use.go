// Package use measures, by an audit log alone, how well ResourceQuotas were used while
// jobs waited: what was used of each limit, against what first fit could have reached.
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

// QuotaUse reports how well the ResourceQuotas of one namespace were used while jobs
// waited there: from the first admission until the last moment at which a unit waits.
type QuotaUse struct {
	Namespace  string    `json:"namespace"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Admissions int       `json:"admissions"`
	// Waited is for how much of that time any unit waits.
	Waited time.Duration `json:"waited"`
	Keys   []KeyUse      `json:"keys"`
}

// KeyUse is the use of one key of one ResourceQuota, as integrals over the time: base
// units (thousandths of cpu, whole ones of all others) times nanoseconds.
type KeyUse struct {
	Quota string `json:"quota"`
	Key   string `json:"key"`
	// Used is what claims hold, or their pods where that is more, and pods of others.
	Used *big.Int `json:"used"`
	// Reach is that and what first fit, in order of priority and then of arrival, over
	// the units that wait, could still add within hard.
	Reach *big.Int `json:"reach"`
	// Allowed is the same where the API server has to agree, which goes by the use that
	// the quota's status tells; that may be behind.
	Allowed *big.Int `json:"allowed"`
}

// Ratio of used and reach: 1 when at no instant a unit that waits would have fitted.
func (k KeyUse) Ratio() float64 { return ratio(k.Used, k.Reach) }

// AllowedRatio of used and allowed.
func (k KeyUse) AllowedRatio() float64 { return ratio(k.Used, k.Allowed) }

func ratio(used, reach *big.Int) float64 {
	if reach.Sign() == 0 {
		return 1
	}
	f, _ := new(big.Rat).SetFrac(used, reach).Float64()
	return f
}

// Ratio is the lowest of all keys.
func (u QuotaUse) Ratio() float64 { return u.lowest(KeyUse.Ratio) }

// AllowedRatio is the lowest of all keys.
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

// Of reports how well ResourceQuotas were used, in the namespaces given or else in all
// in which there were admissions under one. It takes the quota to be by ResourceQuota,
// whatever the options say of that.
func Of(l *model.Log, options model.Options, namespaces ...string) ([]QuotaUse, error) {
	options.ResourceQuota = true
	o, err := options.Complete()
	if err != nil {
		return nil, err
	}
	w := model.NewWorld(o, l.End(o))
	meters := map[string]*meter{}
	for _, write := range l.Writes {
		seeAll := write.Resource == "queues" // they may stop any
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
			return nil, fmt.Errorf("the log shows no unit that waits in namespace %s under a ResourceQuota after the first admission there", namespace)
		}
	}
	return all, nil
}

// meter integrates the use of one namespace.
type meter struct {
	use  QuotaUse
	last time.Time
	// stale: the rates are not those of the state any more.
	stale bool
	// until is when the rates change though nothing happens: a unit's time in backoff
	// is over. Zero: never.
	until   time.Time
	waiting bool
	rates   []rate
	// sums are up to when a unit last waited, pending is what came since.
	sums, pending map[keyOfQuota]*[3]big.Int
	asked         map[*model.Unit]askedOf
	waited        time.Duration
}

type keyOfQuota struct{ quota, key string }

// rate is what a key's integrals grow by in each instant: used, reach and allowed.
type rate struct {
	of keyOfQuota
	by [3]*big.Int
}

// askedOf is what a unit asks for of each limit, while neither it nor the quotas change.
type askedOf struct {
	facts   *model.UnitFacts
	changes int
	amounts []*big.Int
	final   bool // it can never have that
}

func newMeter(first *model.Write) *meter {
	return &meter{use: QuotaUse{Namespace: first.Namespace}, last: first.Time, stale: true,
		sums: map[keyOfQuota]*[3]big.Int{}, pending: map[keyOfQuota]*[3]big.Int{}, asked: map[*model.Unit]askedOf{}}
}

// see begins with the first admission.
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

// advance integrates up to a time, by the state that there was until then.
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
