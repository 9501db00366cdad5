package units

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// Filter selects units. An empty list selects all of them. Case does not matter.
type Filter struct {
	Queues, Kinds, Phases, Reasons []string
}

// Phases returns the phases that a unit can have.
func Phases() []string {
	return []string{string(v1alpha1.PhaseEnqueued), string(v1alpha1.PhaseBackoff), string(v1alpha1.PhaseReserved), string(v1alpha1.PhaseDequeued),
		string(v1alpha1.PhaseRunning), string(v1alpha1.PhaseSucceeded), string(v1alpha1.PhaseFailed)}
}

// Selects reports whether the unit is shown.
func (f Filter) Selects(u *Unit) bool {
	return has(f.Queues, u.Status.Queue) && has(f.Kinds, u.Spec.ConsumerRef.Kind) && has(f.Phases, string(u.Phase())) && has(f.Reasons, u.Status.Reason)
}

func has(list []string, value string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(entry string) bool { return strings.EqualFold(entry, value) })
}

// CheckPhases returns an error if a phase does not exist.
func (f Filter) CheckPhases() error {
	for _, phase := range f.Phases {
		if has(Phases(), phase) {
			continue
		}
		hint := "; the phases are " + strings.Join(Phases(), ", ")
		if meant := spelling.Nearest(phase, Phases()); meant != "" {
			hint = fmt.Sprintf("; did you mean %q?", meant)
		}
		return fmt.Errorf("unknown phase %q%s", phase, hint)
	}
	return nil
}

// Seen collects the values of units, for suggestions.
type Seen struct{ queues, kinds, reasons map[string]bool }

// Add adds the values of a unit.
func (s *Seen) Add(u *Unit) {
	if s.queues == nil {
		s.queues, s.kinds, s.reasons = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	s.queues[u.Status.Queue], s.kinds[u.Spec.ConsumerRef.Kind], s.reasons[u.Status.Reason] = true, true, true
}

// Queue returns the name of a queue in the letter case of the units.
func (s *Seen) Queue(name string) string {
	for queue := range s.queues {
		if strings.EqualFold(queue, name) {
			return queue
		}
	}
	return name
}

// Kind reports whether a unit has the kind. Case does not matter.
func (s *Seen) Kind(kind string) bool {
	for known := range s.kinds {
		if strings.EqualFold(known, kind) {
			return true
		}
	}
	return false
}

// Meant returns the flag and value that a filter without results probably meant; empty if there is no guess.
func (s *Seen) Meant(f Filter) (flag, value string) {
	for _, c := range []struct {
		flag string
		list []string
		seen map[string]bool
	}{{"queue", f.Queues, s.queues}, {"kind", f.Kinds, s.kinds}, {"reason", f.Reasons, s.reasons}} {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(c.seen)), func(name string) bool { return name == "" })
		for _, word := range c.list {
			if has(names, word) && len(names) > 0 {
				continue
			}
			if meant := spelling.Nearest(word, names); meant != "" {
				return c.flag, meant
			}
		}
	}
	return "", ""
}

// Order is the order of a list.
type Order string

// The orders.
const (
	// ByName orders by namespace and name.
	ByName Order = "name"
	// ByAge puts the oldest first.
	ByAge Order = "age"
	// ByPriority puts the highest priority first.
	ByPriority Order = "priority"
)

// Orders returns all orders.
func Orders() []string { return []string{string(ByName), string(ByAge), string(ByPriority)} }

// Sort sorts the units.
func Sort(list []Unit, order Order) {
	slices.SortFunc(list, func(a, b Unit) int { return order.Compare(&a, &b) })
}

// Compare compares two units. The one that comes first is less.
func (o Order) Compare(a, b *Unit) int {
	first := 0
	switch o {
	case ByAge:
		first = a.Submitted().Compare(b.Submitted())
	case ByPriority:
		first = cmp.Compare(b.Spec.Priority, a.Spec.Priority)
	}
	return cmp.Or(first, byName(a, b))
}

func byName(a, b *Unit) int {
	return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
}

// InQueue compares units of the same queue. The one that is tried first is less. q is nil if the queue is not known.
// The objects do not show the run times that the queue has learned, so the order is that of a queue without past jobs.
func InQueue(a, b *Unit, q *v1alpha1.Queue) int {
	capped := func(priority int32) int32 {
		if q != nil && q.Spec.MaxPriority != nil {
			return min(priority, *q.Spec.MaxPriority)
		}
		return priority
	}
	longer := 0
	if q != nil && q.Status.Policy == v1alpha1.PolicyShortestFirst {
		longer = cmp.Compare(lengthOf(a), lengthOf(b))
	}
	return cmp.Or(cmp.Compare(capped(b.Spec.Priority), capped(a.Spec.Priority)), longer, a.Submitted().Compare(b.Submitted()), byName(a, b))
}

func lengthOf(u *Unit) queue.Length {
	if u.Spec.MaxSeconds > 0 || u.Spec.Expected <= 0 {
		return queue.LengthOf(u.Spec.MaxSeconds).Rank()
	}
	return queue.ExpectedLength(min(forecast.FirstOverrun*float64(u.Spec.Expected), queue.UnknownSeconds)).Rank()
}
