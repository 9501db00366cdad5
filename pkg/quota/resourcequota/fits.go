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
		return fmt.Sprintf("can never run under ResourceQuota %s: %s %s asked, and its hard limit is %s; ask for less or raise the limit (%s used now)",
			r.Node, format(r.Asked), r.Resource, format(r.Limit), format(r.Used))
	}
	return fmt.Sprintf("waiting for %s in ResourceQuota %s: %s asked, %s of %s used or kept for released jobs. "+
		"A released job finds room for the pods that it starts with; those that it adds later may be refused",
		r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit))
}

// unknown refuses while the status of a quota is not there: the API server refuses all
// pods then.
func (g *group) unknown(s *space) *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonNoQuota, Node: g.namespace + "/" + s.quota.name, Resource: s.quota.unknown,
		Sentence: fmt.Sprintf("ResourceQuota %s/%s has no status for %s yet, and no pod can be created before the cluster's quota controller has written it",
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
				Sentence: fmt.Sprintf("ResourceQuota %s/%s limits %s, so every container has to set it, and these do not: %s; set it there, or have a LimitRange of the namespace do so",
					g.namespace, s.quota.name, s.key, missing.unset)}
		}
	}
	return nil
}
