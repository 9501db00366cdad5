package visibility

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// mostGroups is the greatest number of groups in an answer. The documentation of the reviews states it.
const mostGroups = 1000

// Queues answers who is in the queues. The namespace is that of the question. The error is for the caller.
func (m *Model) Queues(namespace string, spec visibilityv1alpha1.QueueReviewSpec, access Access) (*visibilityv1alpha1.QueueReviewStatus, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !spec.AllNamespaces && !access.Units(namespace) {
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
	shown := make([]bool, len(m.view.Queues)) // queues in which the caller may list a unit
	groups := newGroups(m)
	selected := make([]int32, 0, len(m.view.Units))
	own := m.owned(namespace, access)
	for i := range m.view.Units {
		u := &m.view.Units[i]
		in := namespaceOf(u.Key)
		if !spec.AllNamespaces && in != namespace || wanted >= 0 && u.Queue != wanted || !m.selects(spec, u) {
			continue
		}
		if !access.Units(in) {
			answer.Hidden++
			continue
		}
		if u.Queue >= 0 {
			shown[u.Queue] = true
		}
		selected = append(selected, int32(i))
	}
	m.sort(selected)
	for _, i := range selected {
		groups.add(i)
	}
	answer.Selected = int32(len(selected))
	for _, i := range selected[:min(len(selected), int(spec.Limit))] {
		answer.Units = append(answer.Units, m.summary(i))
	}
	answer.Groups, answer.OmittedGroups = groups.list()
	for q := range m.view.Queues {
		if wanted == int32(q) || wanted < 0 && (shown[q] || own[q]) {
			answer.Queues = append(answer.Queues, m.queue(int32(q)))
		}
	}
	return answer, nil
}

// owned returns the queues that a caller may see: all for those who may list Queues, and otherwise those of the namespace.
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
		if meant := spelling.Nearest(name, names); meant != "" {
			return fmt.Errorf("queue %q does not exist; did you mean %q?", name, meant)
		}
	}
	return fmt.Errorf("queue %q does not exist", name)
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

// sort orders units by queue; in each queue those that are tried come first, in order, then those that wait for something
// else, then those that hold quota.
func (m *Model) sort(selected []int32) {
	places := m.places()
	rank := func(i int32) int {
		switch u := &m.view.Units[i]; {
		case places[i] > 0:
			return 0
		case u.Phase == scheduler.Waiting:
			return 1
		default:
			return 2
		}
	}
	slices.SortFunc(selected, func(a, b int32) int {
		u, v := &m.view.Units[a], &m.view.Units[b]
		if u.Queue != v.Queue {
			return cmp.Compare(u.Queue, v.Queue)
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(places[a], places[b]), before(u, v))
	})
}

// queue describes a queue.
func (m *Model) queue(q int32) visibilityv1alpha1.QueueSummary {
	v := &m.view.Queues[q]
	s := visibilityv1alpha1.QueueSummary{Name: v.Name, Quota: v.Quota, Policy: string(v.Policy), Stop: string(v1alpha1.StopNone),
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

// computeSums returns the sums of all queues. Units that wait for something else than quota count as well.
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
	namespace     string
	queue         int32
	kind          scheduler.JobKind
	phase         string
	reason        wellknown.Reason
	priority      int32
	requestsOfAll int32
}

// groups collects units that are alike.
type groups struct {
	model *Model
	index map[alike]int
	first []int32
	units []int32
	// requests number the requests, first by their place in memory, which many units share.
	byPlace map[*resources.Amount]int32
	byKey   map[string]int32
}

func newGroups(m *Model) *groups {
	return &groups{model: m, index: map[alike]int{}, byPlace: map[*resources.Amount]int32{}, byKey: map[string]int32{}}
}

func (g *groups) number(v resources.Vector) int32 {
	if len(v) == 0 {
		return -1
	}
	n, known := g.byPlace[&v[0]]
	if !known {
		key := v.Key()
		if n, known = g.byKey[key]; !known {
			n = int32(len(g.byKey))
			g.byKey[key] = n
		}
		g.byPlace[&v[0]] = n
	}
	return n
}

func (g *groups) add(i int32) {
	u := &g.model.view.Units[i]
	key := alike{namespace: namespaceOf(u.Key), queue: u.Queue, kind: u.Kind, phase: phaseName(u), priority: u.Priority}
	if u.Refusal != nil {
		key.reason = u.Refusal.Reason
	}
	if u.Charge == nil || len(u.Charge.Pods) == 0 {
		key.requestsOfAll = g.number(u.Demand.Requests)
	} else {
		key.requestsOfAll = g.number(u.Charge.Total())
	}
	at, known := g.index[key]
	if !known {
		at = len(g.first)
		g.index[key] = at
		g.first, g.units = append(g.first, i), append(g.units, 0)
	}
	g.units[at]++
}

func (g *groups) list() (list []visibilityv1alpha1.UnitGroup, omitted int32) {
	shown := min(len(g.first), mostGroups)
	for at := range shown {
		list = append(list, visibilityv1alpha1.UnitGroup{Units: g.units[at], First: g.model.summary(g.first[at])})
	}
	return list, int32(len(g.first) - shown)
}
