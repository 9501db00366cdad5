package report

import (
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// NeverReleased describes the jobs that were never released for one reason.
type NeverReleased struct {
	Reason string `json:"reason"`
	Jobs   int    `json:"jobs"`
	// Tenants are the tenants of these jobs, sorted by name.
	Tenants []string `json:"tenants"`
	// Job is the first of the jobs, and Message the message of its unit.
	Job     string `json:"job"`
	Message string `json:"message"`
	// Advice is what the user can do.
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
		return "raise the max of the quota in the message, or request less"
	case wellknown.ReasonExceedsMinQuota:
		return "raise the min of the quota in the message, or make the job preemptible"
	case wellknown.ReasonNoQuota:
		return `add the namespaces of these tenants to a node of the tree, or add "*" for all namespaces that no node lists`
	case wellknown.ReasonQueueStopped, wellknown.ReasonNotAtFront:
		return "find out why the front of the queue waits"
	default:
		return "see docs/reference/reasons.md"
	}
}
