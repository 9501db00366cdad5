package visibility

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// Maximum numbers of units and quotas in an answer, as in the documentation of the reviews.
const (
	mostAhead    = 10
	mostHolders  = 20
	mostHolding  = 10
	mostToSearch = 1000
)

// Why returns why a unit waits. The error is for the caller.
func (m *Model) Why(namespace, name string, access Access) (*visibilityv1alpha1.QueueUnitReviewStatus, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := checkLength("unit", name, longestName); err != nil {
		return nil, err
	}
	if !access.Units(namespace) {
		return nil, fmt.Errorf("you may not list QueueUnits in namespace %q", namespace)
	}
	i, known := m.index()[namespace+"/"+name]
	if !known {
		return nil, m.notFound(namespace, name)
	}
	u := &m.view.Units[i]
	answer := &visibilityv1alpha1.QueueUnitReviewStatus{ObservedTime: m.observed(), Phase: phaseName(u), Priority: u.Priority, Requests: m.list(held(u)),
		Position: m.places()[i]}
	if u.Queue >= 0 {
		q := &m.view.Queues[u.Queue]
		answer.Queue, answer.Quota, answer.Policy, answer.Waiting = q.Name, q.Quota, q.Policy.String(), int32(len(m.lines()[u.Queue]))
		m.ahead(answer, u, access)
	}
	r := m.current(u)
	if r == nil {
		return answer, nil
	}
	answer.Reason, answer.Message = r.Reason, m.reported(u, r).Message()
	if until := u.RequeueAt(); !until.IsZero() {
		answer.Until = timeOf(until.Add(time.Second - 1)) // in whole seconds, rounded up
	}
	if u.Phase != scheduler.Waiting {
		answer.WouldAdmit = m.remediesOfReserved(u, r)
		return answer, nil
	}
	lacks := m.lacks(u, r)
	for _, l := range lacks {
		answer.Lacks = append(answer.Lacks, m.lack(l))
	}
	m.holders(answer, lacks, access)
	m.remedies(answer, i, r, access)
	return answer, nil
}

func (m *Model) notFound(namespace, name string) error {
	var names []string
	for i := range m.view.Units {
		if in, other := split(m.view.Units[i].Key); in == namespace && len(names) < mostToSearch {
			names = append(names, other)
		}
	}
	slices.Sort(names)
	if meant := spelling.Nearest(name, names); meant != "" {
		return Missing{fmt.Errorf("QueueUnit %q does not exist in namespace %q, or has ended; did you mean %q?", name, namespace, meant)}
	}
	return Missing{fmt.Errorf("QueueUnit %q does not exist in namespace %q, or has ended", name, namespace)}
}

func (m *Model) ahead(answer *visibilityv1alpha1.QueueUnitReviewStatus, u *scheduler.UnitView, access Access) {
	for _, i := range m.lines()[u.Queue][:max(answer.Position-1, 0)] {
		switch {
		case !access.Units(namespaceOf(m.view.Units[i].Key)):
			answer.AheadHidden++
		case len(answer.Ahead) < mostAhead:
			answer.Ahead = append(answer.Ahead, m.summary(i))
		}
	}
}

// group returns the group of a unit in the copy of the backend; nil if it has none.
func (m *Model) group(u *scheduler.UnitView) quota.Group {
	if m.view.Backend == nil || u.Queue < 0 {
		return nil
	}
	return groupIn(m.view.Backend, u)
}

// groupIn returns the group of a unit in a backend; nil if it has none.
func groupIn(backend quota.Explainer, u *scheduler.UnitView) quota.Group {
	group, refusal := backend.Place(namespaceOf(u.Key), u.QuotaName)
	if refusal != nil {
		return nil
	}
	return group
}

// current returns why a unit waits, by the current state of the quota; nil if it does not wait or is about to be
// tried.
func (m *Model) current(u *scheduler.UnitView) *quota.Refusal {
	r := u.Refusal
	if r == nil {
		return nil
	}
	if group := m.group(u); r.IsLimit() && group != nil && !u.Held {
		if now := group.Fits(u.Demand); now != nil {
			return now
		}
	}
	return r
}

// reported returns the refusal with all resources that a waiting unit lacks.
func (m *Model) reported(u *scheduler.UnitView, r *quota.Refusal) *quota.Refusal {
	if group := m.group(u); group != nil && !u.Held {
		return r.WithOthers(m.view.Backend, group, u.Demand)
	}
	return r
}

// lacks returns the refusals by all limits that leave no room for a waiting unit.
func (m *Model) lacks(u *scheduler.UnitView, r *quota.Refusal) []*quota.Refusal {
	group := m.group(u)
	if group == nil || u.Held {
		return nil
	}
	lacks := m.view.Backend.Lacks(group, u.Demand)
	if r.IsLimit() && r.Final() {
		lacks = append(m.view.Backend.Exceeds(group, u.Demand), lacks...)
	}
	return lacks
}

// Bounds of a lack, as users know them.
const (
	boundMax      = "Max"
	boundMin      = "Min"
	boundReserved = "Reserved"
)

func (m *Model) lack(r *quota.Refusal) visibilityv1alpha1.Lack {
	format := func(v int64) string { return resources.Format(r.Resource, v) }
	l := visibilityv1alpha1.Lack{Quota: r.Node, Bound: boundMax, Resource: r.Resource, Requested: format(r.Asked), Used: format(r.Used), Limit: format(r.Limit)}
	switch r.Lack.Bound {
	case quota.FixedMin, quota.FixedMax:
		l.Bound = boundMin
	case quota.Lending, quota.Kept:
		l.Bound = boundReserved
	}
	missing := r.Asked - r.Limit
	if !r.Final() {
		// If the limit is exceeded, the room is negative, and the excess must be freed as well.
		room := max(m.view.Backend.Room(r.Lack.Space), -math.MaxInt64)
		missing = resources.AddTimes(r.Asked-max(room, 0), max(-room, 0), 1)
	}
	l.Missing = format(max(missing, 0))
	return l
}

// holders adds the quotas and units that hold what is lacking.
func (m *Model) holders(answer *visibilityv1alpha1.QueueUnitReviewStatus, lacks []*quota.Refusal, access Access) {
	if len(lacks) == 0 {
		return
	}
	type holding struct {
		visibilityv1alpha1.Holder
		by             []int64 // for each lack
		used, unqueued resources.Vector
	}
	quotas := map[string]*holding{}
	at := func(path string) *holding {
		h := quotas[path]
		if h == nil {
			h = &holding{Holder: visibilityv1alpha1.Holder{Quota: path}, by: make([]int64, len(lacks))}
			quotas[path] = h
		}
		return h
	}
	add := func(c quota.Charged) (h *holding, by []int64) {
		for j, l := range lacks {
			if amount := m.view.Backend.Holds(l, c); amount > 0 {
				if h == nil {
					h, by = at(c.Path), make([]int64, len(lacks))
				}
				by[j] = amount
				h.by[j] = resources.AddTimes(h.by[j], amount, 1)
			}
		}
		if h != nil {
			total := c.Charge.Total()
			h.used = h.used.Plus(total)
			if c.Charge.Unqueued {
				h.unqueued = h.unqueued.Plus(total)
			}
		}
		return h, by
	}
	type unitHolding struct {
		unit int32
		by   []int64
	}
	var units []unitHolding
	for i := range m.view.Units {
		u := &m.view.Units[i]
		if u.Charge == nil {
			continue
		}
		h, by := add(u.Charged())
		if h == nil {
			continue
		}
		h.Units++
		if !access.Units(namespaceOf(u.Key)) {
			h.HiddenUnits++
		} else {
			units = append(units, unitHolding{int32(i), by})
		}
	}
	for _, left := range m.view.Left {
		add(left)
	}
	slices.SortFunc(units, func(a, b unitHolding) int {
		return cmp.Or(slices.Compare(b.by, a.by), strings.Compare(m.view.Units[a.unit].Key, m.view.Units[b.unit].Key))
	})
	for _, h := range units[:min(len(units), mostHolding)] {
		answer.HoldingUnits = append(answer.HoldingUnits, m.summary(h.unit))
	}
	all := slices.SortedFunc(maps.Values(quotas), func(a, b *holding) int { return cmp.Or(slices.Compare(b.by, a.by), strings.Compare(a.Quota, b.Quota)) })
	borrowed := map[string]resources.Vector{}
	for _, n := range m.view.Usage {
		borrowed[n.Path] = n.Borrowed
	}
	for _, h := range all[:min(len(all), mostHolders)] {
		h.Used, h.Unqueued = m.only(h.used, lacks), m.only(h.unqueued, lacks)
		h.Borrowed = m.only(borrowed[h.Quota], lacks)
		answer.Holders = append(answer.Holders, h.Holder)
	}
}

// only returns the amounts of the lacking resources.
func (m *Model) only(v resources.Vector, lacks []*quota.Refusal) corev1.ResourceList {
	list := m.listWithJobs(v)
	for name, q := range list {
		lacking := slices.ContainsFunc(lacks, func(l *quota.Refusal) bool {
			return l.Resource == string(name) || corev1.DefaultResourceRequestsPrefix+l.Resource == string(name)
		})
		if !lacking || q.IsZero() {
			delete(list, name)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}
