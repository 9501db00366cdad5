package quota

import (
	"fmt"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Refusal reports which check a unit failed.
type Refusal struct {
	Reason wellknown.Reason
	// Node is the path of the node whose limit refused the unit; empty if no node did.
	Node string
	// Resource is the resource that is insufficient; empty if none is.
	Resource string
	// Asked is the requested amount of the resource. Used and Limit are those of the resource at the node. All are in
	// base units; resources.Format makes them readable.
	Asked, Used, Limit int64
	// Unqueued is the part of Used that pods without a unit use.
	Unqueued int64
	// Lack is what must be freed before the unit is worth trying again. It is used only if the refusal is not Final.
	Lack Lack
	// Reserved is, for ReasonBorrowingPaused, how much cannot be borrowed because it is reserved and, for a Lack of bound
	// Kept, how much is kept for claimants.
	Reserved int64
	// Also lists what else can change the decision once it is freed.
	Also []Lack
	// Owed lists the spaces of bound Lending where the demand lacks room because others have borrowed what the group
	// is owed. The amounts must be reserved there while the unit waits. It is empty if the unit is not owed, if
	// anything else is lacking, or if the backend never reserves.
	Owed []Lack
	// Sentence is the message of a refusal that is not caused by the limit of a node.
	Sentence string
	// Detail distinguishes refusals with the same reason that are not caused by the limit of a node and are reported
	// separately, such as the message of an admission check.
	Detail string
	// Others are refusals for other resources, the scarcest first. The message names them too.
	Others []*Refusal
	// Note is added to the message; empty for none.
	Note string
	// Say returns the message if the backend does not use Message for its limits; nil otherwise.
	Say func(*Refusal) string
}

// LastValidNote begins the note of a quota that is in force because the current one is invalid.
const LastValidNote = "the last valid quota tree is in force, because "

// HasLastValidNote reports whether a message contains LastValidNote. After a restart, it is not known whether that is
// still true.
func HasLastValidNote(message string) bool { return strings.Contains(message, "; "+LastValidNote) }

// Cause distinguishes refusals that are reported to users separately. The figures in a message can change without a
// change of the cause.
type Cause struct {
	Reason         wellknown.Reason
	Node, Resource string
	Detail         string
	// Limit is that of the resource at the node. Unlike Used, it seldom changes, and a message with an old one would
	// contradict the quota.
	Limit int64
}

// Cause returns the cause of the refusal.
func (r *Refusal) Cause() Cause {
	c := Cause{Reason: r.Reason, Node: r.Node, Resource: r.Resource, Detail: r.Detail}
	if r.Impossible() || r.IsLimit() {
		c.Limit = r.Limit
	}
	return c
}

// Final reports whether quota that running jobs free cannot help, only a change of the quota or of the unit.
func (r *Refusal) Final() bool {
	switch r.Reason {
	case wellknown.ReasonQuotaExceeded, wellknown.ReasonMaxJobs, wellknown.ReasonBorrowingPaused:
		return false
	default:
		return true
	}
}

// IsLimit reports whether a limit of a quota caused the refusal.
func (r *Refusal) IsLimit() bool {
	switch r.Reason {
	case wellknown.ReasonQuotaExceeded, wellknown.ReasonMaxJobs, wellknown.ReasonBorrowingPaused,
		wellknown.ReasonExceedsMaxQuota, wellknown.ReasonExceedsMinQuota:
		return true
	default:
		return false
	}
}

// Impossible reports whether the unit would not fit even if nothing else held quota.
func (r *Refusal) Impossible() bool {
	return r.Reason == wellknown.ReasonExceedsMaxQuota || r.Reason == wellknown.ReasonExceedsMinQuota || r.Reason == wellknown.ReasonInvalidRequest
}

// Message returns the message for users. It names the node, the resource, and the requested, used and
// maximum amounts, then the Others, and ends with the note.
func (r *Refusal) Message() string {
	message := r.message() + r.others()
	if r.Note != "" {
		message += "; " + r.Note
	}
	return message
}

func (r *Refusal) message() string {
	if r.Say != nil {
		return r.Say(r)
	}
	format := func(v int64) string { return resources.Format(r.Resource, v) }
	unqueued := ""
	if r.Unqueued > 0 {
		unqueued = fmt.Sprintf(" (%s by pods outside of the queue)", format(r.Unqueued))
	}
	switch r.Reason {
	case wellknown.ReasonQuotaExceeded:
		if r.Lack.Bound == FixedMin {
			return fmt.Sprintf("insufficient guaranteed %s in quota %s: requested %s, used %s of min %s by non-preemptible jobs",
				r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit))
		}
		if r.Lack.Bound == FixedMax {
			return fmt.Sprintf("insufficient %s for non-preemptible jobs in quota %s: requested %s, used %s of %s that is not guaranteed to any quota",
				r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit))
		}
		if r.Lack.Bound == Kept {
			return fmt.Sprintf("insufficient %s in quota %s: requested %s, used %s of max %s, kept %s for jobs that others are evicted for",
				r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit), format(r.Reserved))
		}
		return fmt.Sprintf("insufficient %s in quota %s: requested %s, used %s of max %s%s",
			r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit), unqueued)
	case wellknown.ReasonMaxJobs:
		if r.Lack.Bound == Kept {
			return fmt.Sprintf("job limit reached in quota %s: requested %d job, used %d of max %d (%s), kept %d for jobs that others are evicted for",
				r.Node, r.Asked, r.Used, r.Limit, JobsResource, r.Reserved)
		}
		return fmt.Sprintf("job limit reached in quota %s: requested %d job, used %d of max %d (%s)",
			r.Node, r.Asked, r.Used, r.Limit, JobsResource)
	case wellknown.ReasonExceedsMaxQuota:
		return fmt.Sprintf("can never fit in quota %s: requested %s %s, max is %s (used %s); request less, or ask an administrator to raise the max of the quota",
			r.Node, format(r.Asked), r.Resource, format(r.Limit), format(r.Used))
	case wellknown.ReasonExceedsMinQuota:
		if r.Lack.Bound == FixedMax {
			return fmt.Sprintf("can never fit in quota %s: a non-preemptible job requested %s %s, and all but %s is guaranteed to quotas; request less, make the job preemptible, or ask an administrator to guarantee %s by the min of its quota",
				r.Node, format(r.Asked), r.Resource, format(r.Limit), r.Resource)
		}
		return fmt.Sprintf("can never fit in the guarantee of quota %s: a non-preemptible job requested %s %s, min is %s; request less, make the job preemptible, or ask an administrator to raise the min of the quota",
			r.Node, format(r.Asked), r.Resource, format(r.Limit))
	case wellknown.ReasonBorrowingPaused:
		return fmt.Sprintf("borrowing of %s is paused in quota %s until a waiting job gets its guaranteed quota there: requested %s, used %s and reserved %s of max %s",
			r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Reserved), format(r.Limit))
	default:
		return r.Sentence
	}
}
