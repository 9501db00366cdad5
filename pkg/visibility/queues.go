package visibility

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// Queues returns which units are in the queues. namespace is the namespace of the question. The error is for the
// caller.
func (m *Model) Queues(namespace string, spec visibilityv1alpha1.QueueReviewSpec, access Access) (*visibilityv1alpha1.QueueReviewStatus, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := checkQueueSpec(&spec); err != nil {
		return nil, err
	}
	// Check the question's own namespace first, because the number of access checks is limited.
	if own := access.Units(namespace); !own && !spec.AllNamespaces {
		return nil, fmt.Errorf("you may not list QueueUnits in namespace %q", namespace)
	}
	wanted := int32(-1)
	if spec.Queue != "" {
		at := slices.IndexFunc(m.view.Queues, func(q scheduler.QueueView) bool { return q.Name == spec.Queue })
		if at < 0 {
			return nil, m.noQueue(spec.Queue, access)
		}
		wanted = int32(at)
	}
	answer := &visibilityv1alpha1.QueueReviewStatus{ObservedTime: m.observed()}
	shown := m.owned(namespace, access) // and, below, the queues in which the caller may list a unit
	var order []int32                   // of the units; needed only to list them
	if spec.Show == visibilityv1alpha1.ShowGroups || spec.Show == visibilityv1alpha1.ShowUnits {
		order = m.ordered()
	}
	var selected []int32
	may := map[string]bool{} // whether the caller may list the units of a namespace
	last := ""               // often the next unit is of the same namespace
	for n := range m.view.Units {
		i := int32(n)
		if order != nil {
			i = order[n]
		}
		u := &m.view.Units[i]
		in := namespaceOf(u.Key)
		if !spec.AllNamespaces && in != namespace || wanted >= 0 && u.Queue != wanted || !m.selects(spec, u) {
			continue
		}
		if in != last {
			may[in], last = false, in
		}
		selected = append(selected, i)
	}
	for _, in := range slices.Sorted(maps.Keys(may)) { // each page asks in the same order
		may[in] = access.Units(in)
	}
	last, seen := "", false
	selected = slices.DeleteFunc(selected, func(i int32) bool {
		u := &m.view.Units[i]
		if in := namespaceOf(u.Key); in != last {
			last, seen = in, may[in]
		}
		if !seen {
			answer.Hidden++
			return true
		}
		if u.Queue >= 0 {
			shown[u.Queue] = true
		}
		return false
	})
	answer.Selected = int32(len(selected))
	var queues []int32
	for q := range shown {
		if wanted == int32(q) || wanted < 0 && shown[q] {
			queues = append(queues, int32(q))
		}
	}
	switch spec.Show {
	case visibilityv1alpha1.ShowGroups:
		answer.Groups, answer.Total = page(m.groups(selected), spec.Limit, spec.Offset, func(g group) visibilityv1alpha1.UnitGroup {
			return visibilityv1alpha1.UnitGroup{Units: g.units, First: m.summary(g.first)}
		})
	case visibilityv1alpha1.ShowUnits:
		answer.Units, answer.Total = page(selected, spec.Limit, spec.Offset, m.summary)
	default:
		answer.Queues, answer.Total = page(queues, spec.Limit, spec.Offset, m.queue)
		return answer, nil
	}
	if wanted >= 0 {
		answer.Queues = []visibilityv1alpha1.QueueSummary{m.queue(wanted)}
	}
	return answer, nil
}

// page returns the entries that an answer lists, and the number of all entries.
func page[T, E any](all []T, limit, offset int32, entry func(T) E) (listed []E, total int32) {
	from := min(len(all), int(offset))
	for _, of := range all[from:min(len(all), from+int(cmp.Or(limit, visibilityv1alpha1.DefaultLimit)))] {
		listed = append(listed, entry(of))
	}
	return listed, int32(len(all))
}

// owned returns the queues that a caller may see: all if the caller may list Queues, otherwise those of the
// namespace.
func (m *Model) owned(namespace string, access Access) []bool {
	owned := make([]bool, len(m.view.Queues))
	all := access.Queues()
	var path string
	if m.view.Backend != nil && !all {
		if group, refusal := m.view.Backend.Place(namespace, ""); refusal == nil {
			path = group.Path()
		}
	}
	for q := range owned {
		owned[q] = all || m.view.Queues[q].Quota == path
	}
	return owned
}

func (m *Model) noQueue(name string, access Access) error {
	if access.Queues() {
		names := make([]string, len(m.view.Queues))
		for i := range names {
			names[i] = m.view.Queues[i].Name
		}
		if meant := spelling.NearestPath(name, names); meant != "" {
			return Missing{fmt.Errorf("queue %q does not exist; did you mean %q?", name, meant)}
		}
	}
	return Missing{fmt.Errorf("queue %q does not exist", name)}
}

func (m *Model) selects(spec visibilityv1alpha1.QueueReviewSpec, u *scheduler.UnitView) bool {
	if u.Phase == scheduler.Ended {
		return false
	}
	if len(spec.Kinds) > 0 && !slices.ContainsFunc(spec.Kinds, func(kind string) bool { return strings.EqualFold(kind, m.kind(u.Kind)) }) {
		return false
	}
	if len(spec.Phases) > 0 && !slices.ContainsFunc(spec.Phases, func(phase string) bool { return strings.EqualFold(phase, phaseName(u)) }) {
		return false
	}
	return len(spec.Reasons) == 0 || u.Refusal != nil &&
		slices.ContainsFunc(spec.Reasons, func(reason string) bool { return strings.EqualFold(reason, string(u.Refusal.Reason)) })
}

// computeOrdered returns all units by queue. In each queue, tried units come first, in order, then those that wait
// for something else, then those that hold quota.
func (m *Model) computeOrdered() []int32 {
	places, lines := m.places(), m.lines()
	none := len(lines) // those without a queue come first
	waiting, others := make([][]int32, none+1), make([][]int32, none+1)
	for i := range m.view.Units {
		u, q := &m.view.Units[i], none
		if u.Queue >= 0 {
			q = int(u.Queue)
		}
		switch {
		case places[i] > 0:
		case u.Phase == scheduler.Waiting:
			waiting[q] = append(waiting[q], int32(i))
		default:
			others[q] = append(others[q], int32(i))
		}
	}
	ordered := make([]int32, 0, len(m.view.Units))
	add := func(q int) {
		for _, units := range [][]int32{waiting[q], others[q]} {
			slices.SortFunc(units, m.before)
			ordered = append(ordered, units...)
		}
	}
	add(none)
	for q, line := range lines {
		ordered = append(ordered, line...)
		add(q)
	}
	return ordered
}

func (m *Model) queue(q int32) visibilityv1alpha1.QueueSummary {
	v := &m.view.Queues[q]
	s := visibilityv1alpha1.QueueSummary{Name: v.Name, Quota: v.Quota, Policy: v.Policy.String(), Stop: string(v1alpha1.StopNone),
		Pending: int32(v.Pending), Reserved: int32(v.Reserved), Dequeued: int32(v.Dequeued), Running: int32(v.Running), HeadReason: v.HeadReason}
	switch v.Settings.Stop {
	case scheduler.Hold:
		s.Stop = string(v1alpha1.StopHold)
	case scheduler.Drain:
		s.Stop = string(v1alpha1.StopDrain)
	}
	sums := m.sums()[q]
	s.Requested, s.Held = m.list(sums.requested), m.list(sums.held)
	if line := m.lines()[q]; len(line) > 0 {
		s.HighestPriority = &m.view.Units[line[0]].Priority
	}
	return s
}

// sums are what the units of a queue request and hold.
type sums struct{ requested, held resources.Vector }

// computeSums returns the sums of all queues. Units that wait for something other than quota also count.
func (m *Model) computeSums() []sums {
	type total = map[resources.ID]int64
	requested, held := make([]total, len(m.view.Queues)), make([]total, len(m.view.Queues))
	add := func(to *total, v resources.Vector) {
		if *to == nil {
			*to = total{}
		}
		for _, a := range v {
			(*to)[a.ID] = resources.AddTimes((*to)[a.ID], a.Value, 1)
		}
	}
	for i := range m.view.Units {
		u := &m.view.Units[i]
		if u.Queue < 0 {
			continue
		}
		if u.Charge != nil {
			add(&held[u.Queue], u.Charge.Total())
		}
		if u.Phase == scheduler.Waiting {
			add(&requested[u.Queue], u.Demand.Requests)
		}
	}
	all := make([]sums, len(m.view.Queues))
	for q := range all {
		all[q] = sums{vector(requested[q]), vector(held[q])}
	}
	return all
}

func vector(of map[resources.ID]int64) (v resources.Vector) {
	for id, value := range of {
		v = append(v, resources.Amount{ID: id, Value: value})
	}
	slices.SortFunc(v, func(a, b resources.Amount) int { return cmp.Compare(a.ID, b.ID) })
	return v
}

// alike identifies units that are listed as one group.
type alike struct {
	namespace string
	queue     int32
	kind      scheduler.JobKind
	phase     string
	reason    wellknown.Reason
	priority  int32
	requests  int32
}

// group is the number of units that are alike, and the first of them.
type group struct{ first, units int32 }

// groups returns the groups of units that are alike, in the order of their first units.
func (m *Model) groups(units []int32) []group {
	var all []group
	index := map[alike]int{}
	requests := numbers{byPlace: map[*resources.Amount]int32{}, byKey: map[string]int32{}}
	for _, i := range units {
		u := &m.view.Units[i]
		key := alike{namespace: namespaceOf(u.Key), queue: u.Queue, kind: u.Kind, phase: phaseName(u), priority: u.Priority}
		if u.Refusal != nil {
			key.reason = u.Refusal.Reason
		}
		if u.Charge == nil || len(u.Charge.Pods) == 0 {
			key.requests = requests.of(u.Demand.Requests)
		} else {
			key.requests = requests.of(u.Charge.Total())
		}
		at, known := index[key]
		if !known {
			at = len(all)
			index[key] = at
			all = append(all, group{first: i})
		}
		all[at].units++
	}
	return all
}

// numbers assigns a number to each request. It looks up the address first, because many units share one.
type numbers struct {
	byPlace map[*resources.Amount]int32
	byKey   map[string]int32
}

func (n *numbers) of(v resources.Vector) int32 {
	if len(v) == 0 {
		return -1
	}
	number, known := n.byPlace[&v[0]]
	if !known {
		key := v.Key()
		if number, known = n.byKey[key]; !known {
			number = int32(len(n.byKey))
			n.byKey[key] = number
		}
		n.byPlace[&v[0]] = number
	}
	return number
}
