package resourcequota

import (
	"fmt"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Fits returns why the demand does not fit. It reports first what the user must fix, then a quota with unknown status
// or a request that can never fit, then what does not fit now. Within each of these, it reports the first by quota and
// key.
func (g *group) Fits(d quota.Demand) *quota.Refusal {
	if r := g.unset(d); r != nil {
		return r
	}
	var lacking *space
	for _, s := range g.spaces {
		requested := g.backend.requested(s, d).Clamp()
		if requested <= 0 {
			continue
		}
		switch {
		case s.quota.unknown != "":
			return g.unknown(s)
		case requested > s.hard:
			return g.refusal(s, requested, boundOf(d), wellknown.ReasonExceedsMaxQuota)
		case lacking == nil && requested > s.roomIn(boundOf(d)):
			lacking = s
		}
	}
	if lacking == nil {
		return nil
	}
	return g.refusal(lacking, g.backend.requested(lacking, d).Clamp(), boundOf(d), wellknown.ReasonQuotaExceeded)
}

// StillRefuses looks only at the quota and the key of the cause.
func (g *group) StillRefuses(d quota.Demand, c quota.Cause) bool {
	if c.Node == "" || c.Resource == "" {
		return true
	}
	if c.Reason == wellknown.ReasonInvalidRequest {
		r := g.unset(d)
		return r != nil && r.Cause() == c
	}
	for _, s := range g.spaces {
		if g.namespace+"/"+s.quota.name != c.Node {
			continue
		}
		if c.Reason == wellknown.ReasonNoQuota && s.quota.unknown == c.Resource {
			return true
		}
		if s.key != c.Resource {
			continue
		}
		requested := g.backend.requested(s, d).Clamp()
		switch c.Reason {
		case wellknown.ReasonExceedsMaxQuota:
			return requested > s.hard && s.hard == c.Limit
		case wellknown.ReasonQuotaExceeded:
			return requested > 0 && requested > s.roomIn(boundOf(d)) && s.hard == c.Limit
		}
	}
	return false
}

func (g *group) refusal(s *space, requested int64, bound quota.Bound, reason wellknown.Reason) *quota.Refusal {
	r := &quota.Refusal{Reason: reason, Node: g.namespace + "/" + s.quota.name, Resource: s.key,
		Asked: requested, Used: used(s, requested), Limit: s.hard, Say: say,
		Lack: quota.Lack{Space: g.name(s, bound), Amount: requested}}
	return r
}

// used returns how much of a space is not available: by observation, or by the status of the quota if only the status
// refuses. For a moment after a release, the latter counts both the pods and what is reserved for them.
func used(s *space, requested int64) int64 {
	if requested > s.held.Below(s.hard) {
		return s.held.Clamp()
	}
	return s.coming.Plus(s.used).Clamp()
}

// say returns the message of a refusal by a space.
func say(r *quota.Refusal) string {
	format := func(v int64) string { return resources.Format(r.Resource, v) }
	if r.Reason == wellknown.ReasonExceedsMaxQuota {
		return fmt.Sprintf("can never fit in ResourceQuota %s: requested %s %s, hard limit is %s (used %s); request less, or ask an administrator to raise the hard limit",
			r.Node, format(r.Asked), r.Resource, format(r.Limit), format(r.Used))
	}
	return fmt.Sprintf("insufficient %s in ResourceQuota %s: requested %s, used or reserved %s of hard limit %s; "+
		"pods that the job adds after its start may still be rejected",
		r.Resource, r.Node, format(r.Asked), format(r.Used), format(r.Limit))
}

// unknown returns the refusal for a quota without a status. The API server rejects all pods until it
// has one.
func (g *group) unknown(s *space) *quota.Refusal {
	return &quota.Refusal{Reason: wellknown.ReasonNoQuota, Node: g.namespace + "/" + s.quota.name, Resource: s.quota.unknown,
		Sentence: fmt.Sprintf("ResourceQuota %s/%s has no status for %s yet; no pod can be created until kube-controller-manager writes it",
			g.namespace, s.quota.name, s.quota.unknown)}
}

// unset returns the refusal for pods that the API server would always reject: if a quota limits cpu or memory, every
// container must set it. It does not look at pods that exist.
func (g *group) unset(d quota.Demand) *quota.Refusal {
	if d.PodsExist {
		return nil
	}
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
