package quota

import (
	"fmt"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Reason is one word for why a unit waits. Users read it: it never changes its
// meaning.
type Reason string

// Reasons that a backend gives.
const (
	// ReasonNoQuota: no group has the unit's namespace.
	ReasonNoQuota Reason = "NoQuota"
	// ReasonInvalidQuotaTree: there is no quota to decide by, because none that
	// was given is valid.
	ReasonInvalidQuotaTree Reason = "InvalidQuotaTree"
	// ReasonQuotaNotAllowed: the unit names a quota that its namespace may not use.
	ReasonQuotaNotAllowed Reason = "QuotaNotAllowed"
	// ReasonQuotaExceeded: there is no room now.
	ReasonQuotaExceeded Reason = "QuotaExceeded"
	// ReasonMaxJobs: the number of units that hold quota is at its limit.
	ReasonMaxJobs Reason = "MaxJobs"
	// ReasonExceedsMaxQuota: the unit asks for more than the whole quota.
	ReasonExceedsMaxQuota Reason = "ExceedsMaxQuota"
)

// Refusal says which check a unit failed.
type Refusal struct {
	Reason Reason
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
	// Sentence explains a refusal that no node made.
	Sentence string
}

// Lack is room that is missing: Amount of a resource at a node.
type Lack struct {
	Node     NodeID
	Resource resources.ID
	// Amount that Room has to reach.
	Amount int64
}

// Cause tells refusals apart that a user has to be told of separately; the
// figures in a sentence may change without it.
type Cause struct {
	Reason         Reason
	Node, Resource string
}

// Cause of the refusal.
func (r *Refusal) Cause() Cause {
	return Cause{Reason: r.Reason, Node: r.Node, Resource: r.Resource}
}

// Final tells whether nothing that running jobs give back could help: only a
// change of the quota or of the unit can.
func (r *Refusal) Final() bool {
	return r.Reason != ReasonQuotaExceeded && r.Reason != ReasonMaxJobs
}

// Message is a sentence that names node, resource, asked, used and limit.
func (r *Refusal) Message() string {
	format := func(v int64) string { return resources.Format(r.Resource, v) }
	switch r.Reason {
	case ReasonQuotaExceeded:
		return fmt.Sprintf("waiting for %s in quota %s: %s asked, %s of %s used",
			r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit))
	case ReasonMaxJobs:
		return fmt.Sprintf("waiting for a running job to end in quota %s: %d of %d jobs (%s) released",
			r.Node, r.Used, r.Limit, JobsResource)
	case ReasonExceedsMaxQuota:
		return fmt.Sprintf("can never run in quota %s: %s %s asked, and the limit is %s; ask for less or raise the quota's max (%s used now)",
			r.Node, format(r.Asked), r.Resource, format(r.Limit), format(r.Used))
	default:
		return r.Sentence
	}
}
