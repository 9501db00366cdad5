// Package use measures from an audit log how well ResourceQuotas were used while jobs waited:
// the use of each limit compared with the use that first fit could have reached.
package use

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit/checks"
	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// QuotaUse describes how well the ResourceQuotas of one namespace were used while jobs waited
// there, from the first admission until no unit waits any more.
type QuotaUse struct {
	Namespace  string `json:"namespace"`
	Admissions int    `json:"admissions"`
	// Waited is the time during which units waited.
	Waited time.Duration `json:"waited"`
	Keys   []KeyUse      `json:"keys"`
}

// KeyUse is the use of one key of one ResourceQuota, as integrals over time: base units
// (thousandths of cpu, whole units of other resources) times seconds.
type KeyUse struct {
	Quota string `json:"quota"`
	Key   string `json:"key"`
	// Used is the use by units, or by their pods if that is more, and by other pods.
	Used float64 `json:"used"`
	// Reach is Used plus what first fit over the waiting units, ordered by priority and
	// arrival, could add within the hard limit.
	Reach float64 `json:"reach"`
}

// Ratio returns Used divided by Reach: 1 if no waiting unit would have fitted at any time.
func (k KeyUse) Ratio() float64 {
	if k.Reach == 0 {
		return 1
	}
	return k.Used / k.Reach
}

// Ratio returns the lowest ratio of all keys.
func (u QuotaUse) Ratio() float64 {
	least := 1.0
	for _, k := range u.Keys {
		least = min(least, k.Ratio())
	}
	return least
}

func (u QuotaUse) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "namespace %s: %d admissions, units waited %s", u.Namespace, u.Admissions, u.Waited.Round(time.Millisecond))
	for _, k := range u.Keys {
		fmt.Fprintf(&b, "\n  %s %s: %.2f%% of what first fit could reach", k.Quota, k.Key, 100*k.Ratio())
	}
	return b.String()
}

// Of measures how well ResourceQuotas were used, in the given namespaces, or without any in
// all namespaces with admissions under a ResourceQuota. It assumes the backend resourcequota,
// regardless of the options.
func Of(l *facts.Log, options facts.Options, namespaces ...string) ([]QuotaUse, error) {
	options.ResourceQuota = true
	o, err := options.Complete()
	if err != nil {
		return nil, err
	}
	s := state.New(l, o)
	meters := map[string]*meter{}
	for _, write := range l.Writes {
		for namespace, m := range meters {
			if namespace == write.Namespace || write.Resource == "queues" { // which may stop any namespace
				m.advance(s, write.Time)
			}
		}
		c := s.Apply(write)
		m := meters[write.Namespace]
		if m == nil {
			m = &meter{namespace: write.Namespace, last: write.Time, sums: map[limit][2]float64{}}
			meters[write.Namespace] = m
		}
		if c.Admitted {
			m.admissions++
		}
	}
	var all []QuotaUse
	for _, namespace := range slices.Sorted(maps.Keys(meters)) {
		m := meters[namespace]
		m.advance(s, s.End)
		asked := len(namespaces) == 0 || slices.Contains(namespaces, namespace)
		if use := m.total(); len(use.Keys) > 0 && asked {
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

// meter integrates the use of one namespace while units wait.
type meter struct {
	namespace  string
	last       time.Time
	admissions int
	waited     time.Duration
	sums       map[limit][2]float64 // used and reach
}

type limit struct{ quota, key string }

// advance integrates until the given time with the state before it. A backoff that ends in between counts
// from the next write.
func (m *meter) advance(s *state.State, now time.Time) {
	span := now.Sub(m.last)
	if span <= 0 {
		return
	}
	at := m.last
	if m.last = now; m.admissions == 0 {
		return
	}
	rates, waiting := firstFit(s, m.namespace, at)
	if !waiting {
		return
	}
	m.waited += span
	for of, rate := range rates {
		sum := m.sums[of]
		for i := range sum {
			sum[i] += float64(rate[i]) * span.Seconds()
		}
		m.sums[of] = sum
	}
}

func (m *meter) total() QuotaUse {
	use := QuotaUse{Namespace: m.namespace, Admissions: m.admissions, Waited: m.waited}
	for of, sum := range m.sums {
		use.Keys = append(use.Keys, KeyUse{of.quota, of.key, sum[0], sum[1]})
	}
	slices.SortFunc(use.Keys, func(a, b KeyUse) int { return cmp.Or(cmp.Compare(a.Quota, b.Quota), cmp.Compare(a.Key, b.Key)) })
	return use
}

// firstFit returns for each limit of a namespace the current use, and what it would be with the waiting units
// that fit, tried in their order. Units that can never fit do not wait.
func firstFit(s *state.State, namespace string, now time.Time) (rates map[limit][2]int64, waiting bool) {
	charges := s.Charges(namespace, func(*state.Pod) bool { return true })
	rates = map[limit][2]int64{}
	type room struct {
		quota *facts.Quota
		limit *facts.QuotaLimit
		of    limit
		free  int64
	}
	var rooms []room
	for _, q := range s.Quotas[namespace] {
		now := q.Now()
		if now == nil {
			continue
		}
		for i := range now.Limits {
			l := &now.Limits[i]
			used := checks.Taken(now, l, charges)
			r := room{now, l, limit{q.Name, l.Key}, l.Hard - used}
			if l.Unknown {
				r.free = 0 // the API server rejects all pods
			}
			rooms = append(rooms, r)
			rates[r.of] = [2]int64{used, used}
		}
	}
	for _, u := range queued(s, namespace, now) {
		load, fits, never := u.Facts.Load(), true, false
		for _, r := range rooms {
			asked := r.quota.Weigh(r.limit, load)
			never = never || !r.limit.Unknown && asked > r.limit.Hard || u.Facts.Lacks(r.quota, r.limit)
			fits = fits && (asked <= 0 || asked <= r.free)
		}
		waiting = waiting || !never
		if never || !fits {
			continue
		}
		for i := range rooms {
			r := &rooms[i]
			asked := r.quota.Weigh(r.limit, load)
			r.free -= asked
			rates[r.of] = [2]int64{rates[r.of][0], rates[r.of][1] + asked}
		}
	}
	return rates, waiting
}

// queued returns the waiting units in the order in which they are tried.
func queued(s *state.State, namespace string, now time.Time) []*state.Unit {
	var all []*state.Unit
	for _, u := range s.Units {
		j := s.JobOf(u)
		queue := s.Queues[u.Facts.Queue]
		stopped := queue != nil && (queue.Now() == "Hold" || queue.Now() == "Drain")
		if u.Namespace == namespace && u.Exists() && u.Facts.Waits(now) && !stopped && (j == nil || j.Over().IsZero()) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b *state.Unit) int {
		return cmp.Or(cmp.Compare(b.Facts.Priority, a.Facts.Priority), a.Facts.Submitted.Compare(b.Facts.Submitted), cmp.Compare(a.Name, b.Name))
	})
	return all
}
