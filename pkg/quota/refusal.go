package quota

import (
	"fmt"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Refusal says which check a unit failed.
type Refusal struct {
	Reason wellknown.Reason
	// Node is the path of the node whose limit refused; empty when no node did.
	Node string
	// Resource that is lacking; empty when none is.
	Resource string
	// Asked, Used and Limit of the resource at the node, in base units
	// (resources.Format makes them readable).
	Asked, Used, Limit int64
	// Lack is what has to be freed before asking again makes sense. Of use only
	// for a refusal that is not Final.
	Lack Lack
	// Also is another room that changes the answer once it is freed; nil if there
	// is none.
	Also *Lack
	// Owed names the spaces where the demand lacks room though its group is owed
	// it, because others have borrowed it: borrowing there is to be paused while it
	// waits. Empty when it is not so, or borrowing is never paused.
	Owed []Space
	// Sentence explains a refusal that no node made.
	Sentence string
	// Say makes the sentence of a backend that has its own words for what a node
	// refused; nil where those of Message do.
	Say func(*Refusal) string
}

// Cause tells refusals apart that a user has to be reported separately; the
// figures in a sentence may change without it.
type Cause struct {
	Reason         wellknown.Reason
	Node, Resource string
}

// Cause of the refusal.
func (r *Refusal) Cause() Cause {
	return Cause{Reason: r.Reason, Node: r.Node, Resource: r.Resource}
}

// Final reports whether nothing that running jobs give back could help: only a
// change of the quota or of the unit can.
func (r *Refusal) Final() bool {
	switch r.Reason {
	case wellknown.ReasonQuotaExceeded, wellknown.ReasonMaxJobs, wellknown.ReasonBorrowingPaused:
		return false
	default:
		return true
	}
}

// Impossible reports whether the unit could not have its room even if nothing else had
// any.
func (r *Refusal) Impossible() bool {
	return r.Reason == wellknown.ReasonExceedsMaxQuota || r.Reason == wellknown.ReasonExceedsMinQuota || r.Reason == wellknown.ReasonInvalidRequest
}

// Message is a sentence that names node, resource, asked, used and limit.
func (r *Refusal) Message() string {
	if r.Say != nil {
		return r.Say(r)
	}
	format := func(v int64) string { return resources.Format(r.Resource, v) }
	switch r.Reason {
	case wellknown.ReasonQuotaExceeded:
		if r.Lack.Bound == FixedMin {
			return fmt.Sprintf("insufficient guaranteed %s in quota %s: requested %s, used %s of min %s by non-preemptible jobs",
				r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit))
		}
		return fmt.Sprintf("insufficient %s in quota %s: requested %s, used %s of max %s",
			r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit))
	case wellknown.ReasonMaxJobs:
		return fmt.Sprintf("job limit reached in quota %s: %d of %d jobs hold quota (%s)",
			r.Node, r.Used, r.Limit, JobsResource)
	case wellknown.ReasonExceedsMaxQuota:
		return fmt.Sprintf("can never fit in quota %s: requested %s %s, max is %s (used %s); request less or raise the max of the quota",
			r.Node, format(r.Asked), r.Resource, format(r.Limit), format(r.Used))
	case wellknown.ReasonExceedsMinQuota:
		return fmt.Sprintf("can never fit in the guarantee of quota %s: a non-preemptible job requested %s %s, min is %s; request less, make the job preemptible, or raise the min of the quota",
			r.Node, format(r.Asked), r.Resource, format(r.Limit))
	case wellknown.ReasonBorrowingPaused:
		return fmt.Sprintf("borrowing of %s is paused in quota %s until a waiting job gets its guaranteed quota there: requested %s, used %s of max %s",
			r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit))
	default:
		return r.Sentence
	}
}
