package units

import (
	"maps"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Group is one or more units that are alike.
type Group struct {
	// First is the unit that was submitted first.
	First *Unit
	Count int
}

// Singles returns a group for each unit, in the order of the list.
func Singles(list []Unit) []Group {
	groups := make([]Group, len(list))
	for i := range list {
		groups[i] = Group{First: &list[i], Count: 1}
	}
	return groups
}

// alike is the key that units of a group share.
type alike struct {
	namespace, queue, kind, phase, reason, request string
	priority                                       int32
}

// Together groups units that are alike. The groups are in the order of their first units in the list.
func Together(list []Unit) []Group {
	var groups []Group
	place := map[alike]int{}
	for i := range list {
		u := &list[i]
		key := alike{u.Metadata.Namespace, u.Status.Queue, u.Spec.ConsumerRef.APIVersion + " " + u.Spec.ConsumerRef.Kind, string(u.Phase()), u.Status.Reason,
			RequestText(u.Requests()), u.Spec.Priority}
		at, known := place[key]
		if !known {
			place[key] = len(groups)
			groups = append(groups, Group{First: u, Count: 1})
			continue
		}
		g := &groups[at]
		g.Count++
		if u.Submitted().Before(g.First.Submitted()) {
			g.First = u
		}
	}
	return groups
}

// RequestText returns what a unit requests as text: "4 cpu, 8Gi memory".
func RequestText(request map[string]Amount) string {
	parts := make([]string, 0, len(request))
	for _, name := range slices.Sorted(maps.Keys(request)) {
		amount := request[name]
		q, valid := amount.Quantity()
		if valid && q.IsZero() {
			continue
		}
		text := string(amount)
		if valid {
			text = resources.FormatQuantity(name, q)
		}
		parts = append(parts, text+" "+name)
	}
	return strings.Join(parts, ", ")
}
