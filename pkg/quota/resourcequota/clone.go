package resourcequota

import (
	"fmt"
	"maps"
	"slices"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var _ quota.Explainer = (*Backend)(nil)

// Clone returns a copy of the backend with what is charged.
func (b *Backend) Clone(names *resources.Names) quota.Explainer {
	c := &Backend{names: names, jobs: b.jobs, dimensions: maps.Clone(b.dimensions), namespaces: make(map[string]*group, len(b.namespaces)),
		groups: make([]*group, len(b.groups)), free: slices.Clone(b.free)}
	for namespace, g := range b.namespaces {
		copied := &group{backend: c, namespace: g.namespace, queue: g.queue, nodes: g.nodes, quotas: make(map[string]*limits, len(g.quotas)),
			charges: map[*quota.Charge]struct{}{}, charged: maps.Clone(g.charged), unqueued: maps.Clone(g.unqueued)}
		for name, l := range g.quotas {
			copied.quotas[name] = new(*l)
		}
		if g.byID != nil {
			copied.byID = make(map[resources.ID]*space, len(g.byID))
		}
		for _, s := range g.spaces {
			other := *s
			other.quota, other.weighs = copied.quotas[s.quota.name], maps.Clone(s.weighs)
			copied.spaces = append(copied.spaces, &other)
			copied.byID[s.id] = &other
		}
		c.namespaces[namespace], c.groups[g.nodes[0]] = copied, copied
	}
	for _, g := range b.listed {
		c.listed = append(c.listed, c.namespaces[g.Path()])
	}
	return c
}

// Lacks returns a refusal for every quota of the namespace that has no room for the demand now.
func (b *Backend) Lacks(of quota.Group, d quota.Demand) (lacks []*quota.Refusal) {
	g, is := of.(*group)
	if !is {
		return nil
	}
	for _, s := range g.spaces {
		requested := b.sum(s, d.Requests).Clamp()
		if requested > s.roomIn(boundOf(d)) && requested > 0 && requested <= s.hard && s.quota.unknown == "" {
			lacks = append(lacks, g.refusal(s, requested, boundOf(d), wellknown.ReasonQuotaExceeded))
		}
	}
	return lacks
}

// Exceeds returns a refusal for every hard limit of the namespace that the demand alone exceeds.
func (b *Backend) Exceeds(of quota.Group, d quota.Demand) (exceeded []*quota.Refusal) {
	g, is := of.(*group)
	if !is {
		return nil
	}
	for _, s := range g.spaces {
		if requested := b.sum(s, d.Requests).Clamp(); requested > s.hard && requested > 0 && s.quota.unknown == "" {
			exceeded = append(exceeded, g.refusal(s, requested, boundOf(d), wellknown.ReasonExceedsMaxQuota))
		}
	}
	return exceeded
}

// Holds returns how much the charge holds in the space of a refusal.
func (b *Backend) Holds(r *quota.Refusal, c quota.Charged) int64 {
	s := b.space(r.Lack.Space)
	if s == nil || b.groups[r.Lack.Node].namespace != c.Path {
		return 0
	}
	held, _ := b.holds(s, c.Charge)
	return held.Clamp()
}

// space returns a space; nil if there is none.
func (b *Backend) space(of quota.Space) *space {
	if of.Node < 0 || int(of.Node) >= len(b.groups) || b.groups[of.Node] == nil {
		return nil
	}
	return b.groups[of.Node].byID[of.Resource]
}

// Of returns the group of the namespace.
func (b *Backend) Of(c quota.Charged) quota.Group { return b.group(c.Path) }

// Raised returns a copy with higher limits and the same charges. It ignores the usage in the status of the quotas,
// which counts what is charged once it has settled.
func (b *Backend) Raised(names *resources.Names, raises []quota.Raise) (quota.Explainer, error) {
	c := b.Clone(names).(*Backend)
	for _, g := range c.groups {
		if g == nil {
			continue
		}
		for _, s := range g.spaces {
			s.used = 0
		}
	}
	for _, r := range raises {
		s := c.space(r.Space)
		if s == nil {
			return nil, fmt.Errorf("no ResourceQuota has space %v", r.Space)
		}
		s.hard = resources.AddTimes(s.hard, r.By, 1)
	}
	return c, nil
}

// Written returns the hard limits before and after the raises.
func (b *Backend) Written(raises []quota.Raise) ([]quota.Written, error) {
	written := make([]quota.Written, 0, len(raises))
	for _, r := range raises {
		s := b.space(r.Space)
		if s == nil {
			return nil, fmt.Errorf("no ResourceQuota has space %v", r.Space)
		}
		written = append(written, quota.Written{Quota: b.groups[r.Node].namespace + "/" + s.quota.name, Field: "hard", Resource: s.key,
			From: s.hard, To: resources.AddTimes(s.hard, r.By, 1)})
	}
	return written, nil
}

// Known returns the amounts of all classes of pods by the keys of quotas.
func (b *Backend) Known(v resources.Vector) resources.Vector {
	of := amounts{}
	of.add(v)
	return b.byKey(of)
}
