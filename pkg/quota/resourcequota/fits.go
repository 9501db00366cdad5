package resourcequota

import (
	"fmt"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Fits reports what refuses the demand. What the user must fix comes first, then a quota
// that is not known yet, then what can never fit, then what lacks room now; of each the
// first by quota and key.
func (g *group) Fits(d quota.Demand) *quota.Refusal {
	if r := g.unset(d); r != nil {
		return r
	}
	var lacking *space
	for _, s := range g.spaces {
		asked := g.backend.asked(s, d.Requests)
		if asked <= 0 {
			continue
		}
		switch {
		case s.quota.unknown != "":
			return g.unknown(s)
		case asked > s.hard:
			return g.refusal(s, asked, wellknown.ReasonExceedsMaxQuota)
		case lacking == nil && asked > s.room():
			lacking = s
		}
	}
	if lacking == nil {
		return nil
	}
	return g.refusal(lacking, g.backend.asked(lacking, d.Requests), wellknown.ReasonQuotaExceeded)
}

func (g *group) refusal(s *space, asked int64, reason wellknown.Reason) *quota.Refusal {
	r := &quota.Refusal{Reason: reason, Node: g.namespace + "/" + s.quota.name, Resource: s.key,
		Asked: asked, Used: used(s, asked), Limit: s.hard, Say: say,
		Lack: quota.Lack{Space: g.name(s), Amount: asked}}
	return r
}

// used is what is not to be had of a space: by what was seen, unless the status alone
// refuses. For a moment after a release that counts pods and what is kept for them.
func used(s *space, asked int64) int64 {
	if asked > s.held.Below(s.hard) {
		return s.held.Clamp()
	}
	return s.coming.Plus(s.used).Clamp()
}

// say is the sentence of refusals by a space.
func say(r *quota.Refusal) string {
	format := func(v int64) string { return resources.Format(r.Resource, v) }
	if r.Reason == wellknown.ReasonExceedsMaxQuota {
		return fmt.Sprintf("can never fit in ResourceQuota %s: requested %s %s, hard limit is %s (used %s); request less or raise the hard limit",
			r.Node, format(r.Asked), r.Resource, format(r.Limit), format(r.Used))
	}
	return fmt.Sprintf("insufficient %s in ResourceQuota %s: requested %s, used or reserved %s of hard limit %s; "+
		"only the initial pods of a released job are guaranteed to fit",
		r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit))
}

// unknown refuses while the status of a quota is not there: the API server refuses all
// pods then.
func (g *group) unknown(s *space) *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonNoQuota, Node: g.namespace + "/" + s.quota.name, Resource: s.quota.unknown,
		Sentence: fmt.Sprintf("ResourceQuota %s/%s has no status for %s yet; no pod can be created until kube-controller-manager writes it",
			g.namespace, s.quota.name, s.quota.unknown)}
}

// unset refuses pods that the API server would never take: of cpu and memory, it wants
// every container to say how much where a quota limits it.
func (g *group) unset(d quota.Demand) *quota.Refusal {
	for _, a := range d.Requests {
		missing := g.backend.dimensions[a.ID]
		if missing.unset == "" {
			continue
		}
		for _, s := range g.spaces {
			if s.known != missing.key || !s.quota.matches(missing.class) {
				continue
			}
			return &quota.Refusal{Reason: wellknown.ReasonInvalidRequest, Node: g.namespace + "/" + s.quota.name, Resource: s.key,
				Sentence: fmt.Sprintf("ResourceQuota %s/%s requires every container to set %s, but these do not: %s; set it, or define a default with a LimitRange in the namespace",
					g.namespace, s.quota.name, s.key, missing.unset)}
		}
	}
	return nil
}
