package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// meterKept is how long the totals of a namespace are kept after it stops using a quota.
const meterKept = 24 * time.Hour

// Consumption is what the holders of a namespace have used of a quota over time. It does not include the quotas below.
type Consumption struct {
	Quota, Namespace string
	Amounts          []Metered
}

// Metered is how much of a resource is used and was used.
type Metered struct {
	ID resources.ID
	// Used is in base units. Total is the integral of Used over time, in base units times microseconds.
	Used, Total resources.Sum
	// at is when Total was computed, as meters.elapsed.
	at int64
}

// meters measure what is charged over time. A change of a charge costs only a lookup and the amounts that change.
type meters struct {
	// now is the time of the event or call in progress.
	now time.Time
	// began is the time of the first change, and elapsed the microseconds since then. elapsed is a difference of two
	// times, so setting the clock back does not reduce a total.
	began   time.Time
	elapsed int64
	of      map[meterKey]*meter
}

type meterKey struct{ quota, namespace string }

// meter has the amounts of one namespace in one quota, ordered by resource. changed is when one last changed.
type meter struct {
	amounts []Metered
	changed int64
}

func newMeters() meters { return meters{of: map[meterKey]*meter{}} }

// tick updates elapsed.
func (m *meters) tick() {
	if m.began.IsZero() {
		m.began = m.now
	}
	m.elapsed = max(m.elapsed, m.now.Sub(m.began).Microseconds())
}

// change replaces a charge in the quota; either can be empty.
func (m *meters) change(quota, namespace string, was, now resources.Vector) {
	m.tick()
	at := m.of[meterKey{quota, namespace}]
	if at == nil {
		at = &meter{}
		m.of[meterKey{quota, strings.Clone(namespace)}] = at // the namespace is a part of the key of a unit
	}
	at.changed = m.elapsed
	for _, a := range was {
		amount := at.amount(a.ID, m.elapsed)
		amount.Used = amount.Used.Minus(a.Value)
	}
	for _, a := range now {
		amount := at.amount(a.ID, m.elapsed)
		amount.Used = amount.Used.Plus(a.Value)
	}
}

// amount returns the amount of a resource with the total until now. The pointer is valid until the next call.
func (m *meter) amount(id resources.ID, now int64) *Metered {
	at, found := slices.BinarySearchFunc(m.amounts, id, func(a Metered, id resources.ID) int { return int(a.ID) - int(id) })
	if !found {
		m.amounts = slices.Insert(m.amounts, at, Metered{ID: id, at: now})
	}
	m.amounts[at].advance(now)
	return &m.amounts[at]
}

func (a *Metered) advance(now int64) {
	a.Total = a.Total.Add(a.Used.Times(now - a.at))
	a.at = now
}

// stop ends all charges.
func (m *meters) stop() {
	m.tick()
	for _, at := range m.of {
		for i := range at.amounts {
			at.amounts[i].advance(m.elapsed)
			at.amounts[i].Used = resources.Sum{}
		}
	}
}

// forget drops the totals of resources that are not in the set.
func (m *meters) forget(used resources.IDs) {
	for _, at := range m.of {
		at.amounts = slices.DeleteFunc(at.amounts, func(a Metered) bool { return a.Used == resources.Sum{} && !used.Has(a.ID) })
	}
}

// differ returns the differences between what is metered and what is charged.
func (m *meters) differ(charged *meters, name func(resources.ID) string) (broken []error) {
	for key, at := range m.of {
		var should meter
		if c := charged.of[key]; c != nil {
			should = *c
		}
		for _, a := range at.amounts {
			if s := should.amount(a.ID, 0); s.Used != a.Used {
				broken = append(broken, fmt.Errorf("quota %s, namespace %s: %s: metered is %v, charged %v", key.quota, key.namespace, name(a.ID), a.Used.Clamp(), s.Used.Clamp()))
			}
		}
		if len(should.amounts) > len(at.amounts) {
			broken = append(broken, fmt.Errorf("quota %s, namespace %s: more resources are charged than metered", key.quota, key.namespace))
		}
		delete(charged.of, key)
	}
	for key := range charged.of {
		broken = append(broken, fmt.Errorf("quota %s, namespace %s is not metered", key.quota, key.namespace))
	}
	return broken
}

// Consumption returns what was used from the first change until now, by the resource names that users know, in no
// particular order. now must not be before the last event.
func (s *Scheduler) Consumption(now time.Time) []Consumption {
	s.meters.now = now
	s.meters.tick()
	known := s.knownIDs()
	all := make([]Consumption, 0, len(s.meters.of))
	for key, at := range s.meters.of {
		seen, uses := meter{amounts: make([]Metered, 0, len(at.amounts))}, false
		for i := range at.amounts {
			a := &at.amounts[i]
			a.advance(s.meters.elapsed)
			uses = uses || a.Used != resources.Sum{}
			if id, is := known(a.ID); is {
				sum := seen.amount(id, s.meters.elapsed)
				sum.Used, sum.Total = sum.Used.Add(a.Used), sum.Total.Add(a.Total)
			}
		}
		if !uses && s.meters.elapsed-at.changed > meterKept.Microseconds() {
			delete(s.meters.of, key)
			continue
		}
		all = append(all, Consumption{Quota: key.quota, Namespace: key.namespace, Amounts: seen.amounts})
	}
	return all
}

// knownIDs returns a function that converts a resource to the one that users know; false if they know none.
func (s *Scheduler) knownIDs() func(resources.ID) (resources.ID, bool) {
	known := map[resources.ID]resources.ID{}
	return func(id resources.ID) (resources.ID, bool) {
		if _, seen := known[id]; !seen {
			known[id] = -1
			if v := s.known(resources.Vector{{ID: id, Value: 1}}); len(v) == 1 {
				known[id] = v[0].ID
			}
		}
		return known[id], known[id] >= 0
	}
}

// known converts a vector to the resource names that users know.
func (s *Scheduler) known(v resources.Vector) resources.Vector {
	if explainer, is := s.backend.(quota.Explainer); is {
		return explainer.Known(v)
	}
	return v
}
