package report

import (
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Never reports jobs that were never released for one reason.
type NeverReleased struct {
	Reason string `json:"reason"`
	Jobs   int    `json:"jobs"`
	// Tenants that they belong to, in the order of names.
	Tenants []string `json:"tenants"`
	// Job is the first of them, and Message what it is reported.
	Job     string `json:"job"`
	Message string `json:"message"`
	// Advice is what to do.
	Advice string `json:"advice"`
}

func (m *measured) never() []NeverReleased {
	list := []NeverReleased{}
	for i := range m.jobs {
		j := &m.jobs[i]
		if j.Released {
			continue
		}
		at := slices.IndexFunc(list, func(n NeverReleased) bool { return n.Reason == string(j.Reason) })
		if at < 0 {
			at = len(list)
			list = append(list, NeverReleased{Reason: string(j.Reason), Job: j.Namespace + "/" + j.Name, Message: j.Message, Advice: advice(j.Reason)})
		}
		n := &list[at]
		n.Jobs++
		if place, known := slices.BinarySearch(n.Tenants, j.Namespace); !known {
			n.Tenants = slices.Insert(n.Tenants, place, j.Namespace)
		}
	}
	slices.SortFunc(list, func(a, b NeverReleased) int { return strings.Compare(a.Reason, b.Reason) })
	return list
}

func advice(reason wellknown.Reason) string {
	switch reason {
	case wellknown.ReasonExceedsMaxQuota:
		return "raise the max of the quota named, or let it borrow (a max above its min); or ask for less"
	case wellknown.ReasonExceedsMinQuota:
		return "raise the min of the quota named, or make the job preemptible"
	case wellknown.ReasonNoQuota:
		return `list the tenants among the namespaces of a node of the tree, or "*" for all that no node lists`
	case wellknown.ReasonQueueStopped, wellknown.ReasonNotAtFront:
		return "see what holds the front of the queue up"
	default:
		return "see docs/reference/reasons.md"
	}
}
