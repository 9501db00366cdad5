// Package visibility answers questions about the state of the core: why a unit waits, which units are in a queue and
// in which order, how the quota is used, and what would happen if something were different.
//
// A Model is made from one View, and questions do not change it, so all its answers describe the same time. Expensive
// parts, such as the order of the units, are computed on first use.
//
// If an answer says that a change admits a unit, the change was tried in a second core. A raise is enough for the unit
// and for all units that would be admitted before it, in any queue, because they would take the added quota first.
//
// An answer names only units in namespaces whose units the caller may list. For other units, it has only counts and
// amounts. Answers contain the paths of quotas, like the messages of units.
package visibility

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Access is what a caller may see.
type Access struct {
	// Units reports whether the caller may list the units of a namespace.
	Units func(namespace string) bool
	// Queues and Trees report whether the caller may list Queues and ElasticQuotaTrees.
	Queues, Trees func() bool
}

// Model answers questions about one View. It is safe for concurrent use.
type Model struct {
	view *scheduler.View
	// kinds are the names of the kinds of jobs by their numbers. namespace is the namespace of the Queues.
	kinds     []string
	namespace string

	// index maps keys to units. contenders are the units that wait for quota, by queue and in order. lines are the
	// contenders that are tried, because they can fit at all. places are their positions in lines, from 1; 0 for others.
	index      func() map[string]int32
	contenders func() [][]int32
	lines      func() [][]int32
	places     func() []int32
	// oldest are the units that have waited longest, in queues that reserve quota for them. Units for growth get no
	// reservation.
	oldest func() [][]int32
	// ordered are all units in the order of a list.
	ordered func() []int32
	// sums are by queue and nodes by node. loans are those between the nodes.
	sums  func() []sums
	nodes func() []nodeSums
	loans func() quota.Loans
	// greatest is the largest request of a waiting unit, by resource.
	greatest func() map[resources.ID]int64
	// unreserved is the quota with everything charged, but nothing reserved or planned; nil if there is none.
	unreserved func() quota.Explainer

	// Read reads a new unit. It uses the backend and the names of the view, and can add to them. If it is nil, new units
	// cannot be tried.
	Read func(*v1alpha1.QueueUnit) (scheduler.Unit, error)

	// mutex protects the backend and the names, because questions can add to them. Each answer holds it.
	mutex *sync.Mutex
}

// New returns a model of the view. namespace is the namespace of the Queues.
func New(view *scheduler.View, kinds []string, namespace string) *Model {
	m := &Model{view: view, kinds: kinds, namespace: namespace, mutex: &sync.Mutex{}}
	m.index = sync.OnceValue(func() map[string]int32 {
		index := make(map[string]int32, len(view.Units))
		for i := range view.Units {
			index[view.Units[i].Key] = int32(i)
		}
		return index
	})
	m.contenders = sync.OnceValue(func() [][]int32 {
		all := make([][]int32, len(view.Queues))
		for i := range view.Units {
			if u := &view.Units[i]; u.Queue >= 0 && u.Phase == scheduler.Waiting && !u.Held {
				all[u.Queue] = append(all[u.Queue], int32(i))
			}
		}
		for _, of := range all {
			slices.SortFunc(of, m.before)
		}
		return all
	})
	m.lines = sync.OnceValue(func() [][]int32 {
		lines := make([][]int32, len(view.Queues))
		for q, of := range m.contenders() {
			lines[q] = slices.DeleteFunc(slices.Clone(of), func(i int32) bool {
				r := view.Units[i].Refusal
				return r != nil && r.Impossible()
			})
		}
		return lines
	})
	m.places = sync.OnceValue(func() []int32 {
		places := make([]int32, len(view.Units))
		for _, line := range m.lines() {
			for i, unit := range line {
				places[unit] = int32(i + 1)
			}
		}
		return places
	})
	m.oldest = sync.OnceValue(func() [][]int32 {
		oldest := make([][]int32, len(view.Queues))
		for q, line := range m.lines() {
			if view.Queues[q].Settings.ReserveAfter > 0 {
				of := slices.DeleteFunc(slices.Clone(line), func(i int32) bool { return view.Units[i].Growth })
				slices.SortFunc(of, func(i, j int32) int {
					a, b := &view.Units[i], &view.Units[j]
					return cmp.Or(cmp.Compare(a.Submitted, b.Submitted), strings.Compare(a.Key, b.Key))
				})
				oldest[q] = of[:min(len(of), leastStarts)]
			}
		}
		return oldest
	})
	m.greatest = sync.OnceValue(func() map[resources.ID]int64 {
		greatest := map[resources.ID]int64{}
		for _, of := range m.contenders() {
			for _, i := range of {
				for _, a := range view.Units[i].Demand.Requests {
					if a.Value > greatest[a.ID] {
						greatest[a.ID] = a.Value
					}
				}
			}
		}
		return greatest
	})
	m.unreserved = sync.OnceValue(func() quota.Explainer {
		if view.Backend == nil {
			return nil
		}
		backend, err := view.Backend.Raised(view.Names, nil)
		if err != nil { // without a raise, the limits are valid
			return view.Backend
		}
		return backend
	})
	m.ordered, m.sums = sync.OnceValue(m.computeOrdered), sync.OnceValue(m.computeSums)
	m.nodes = sync.OnceValue(m.computeNodes)
	m.loans = sync.OnceValue(func() quota.Loans { return quota.NewLoans(view.Usage) })
	return m
}

// before compares units in the order of a queue.
func (m *Model) before(i, j int32) int {
	a, b, longer := &m.view.Units[i], &m.view.Units[j], 0
	if a.Queue >= 0 && m.view.Queues[a.Queue].Policy.ByLimit {
		longer = cmp.Compare(a.Length.Rank(), b.Length.Rank())
	}
	if order := cmp.Or(cmp.Compare(b.Priority, a.Priority), longer, cmp.Compare(a.Submitted, b.Submitted)); order != 0 {
		return order // most names are elsewhere in memory, and need not be read
	}
	return strings.Compare(a.Key, b.Key)
}

func (m *Model) observed() metav1.MicroTime { return metav1.NewMicroTime(m.view.At) }

func (m *Model) kind(of scheduler.JobKind) string {
	if int(of) < len(m.kinds) {
		return m.kinds[of]
	}
	return ""
}

// phaseName returns the phase as users know it.
func phaseName(u *scheduler.UnitView) string {
	switch u.Phase {
	case scheduler.Reserved:
		return string(v1alpha1.PhaseReserved)
	case scheduler.Dequeued:
		return string(v1alpha1.PhaseDequeued)
	case scheduler.Running:
		return string(v1alpha1.PhaseRunning)
	case scheduler.Ended:
		return "Ended"
	default:
		if !u.RequeueAt().IsZero() {
			return string(v1alpha1.PhaseBackoff)
		}
		return string(v1alpha1.PhaseEnqueued)
	}
}

func split(key string) (namespace, name string) {
	namespace, name, _ = strings.Cut(key, "/")
	return namespace, name
}

func namespaceOf(key string) string {
	namespace, _ := split(key)
	return namespace
}

// list returns a vector with the names that users know, without the number of jobs.
func (m *Model) list(v resources.Vector) corev1.ResourceList {
	list := m.listWithJobs(v)
	delete(list, quota.JobsResource)
	if len(list) == 0 {
		return nil
	}
	return list
}

func (m *Model) listWithJobs(v resources.Vector) corev1.ResourceList {
	if m.view.Backend != nil {
		v = m.view.Backend.Known(v)
	}
	return m.quantities(v)
}

// quantities returns a vector with the names of its resources.
func (m *Model) quantities(v resources.Vector) corev1.ResourceList {
	if len(v) == 0 {
		return nil
	}
	return resources.Quantities[corev1.ResourceName](m.view.Names, v)
}

// held returns what a unit is charged or, if it is not charged, what it requests.
func held(u *scheduler.UnitView) resources.Vector {
	if u.Charge != nil {
		return u.Charge.Total()
	}
	return u.Demand.Requests
}

func (m *Model) summary(i int32) visibilityv1alpha1.UnitSummary {
	u := &m.view.Units[i]
	s := visibilityv1alpha1.UnitSummary{Kind: m.kind(u.Kind), Phase: phaseName(u), Priority: u.Priority, Requests: m.list(held(u)),
		Position: m.places()[i], SubmissionTime: timeOf(time.UnixMicro(u.Submitted)), DequeueTime: timeOf(u.DequeuedAt()), EndsBefore: timeOf(u.EndsAt())}
	s.Namespace, s.Name = split(u.Key)
	if u.Phase == scheduler.Waiting {
		s.DequeueTime = nil
	}
	if u.Queue >= 0 {
		s.Queue = m.view.Queues[u.Queue].Name
	}
	if u.Refusal != nil {
		s.Reason = u.Refusal.Reason
	}
	return s
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.Truncate(time.Second)}
}
