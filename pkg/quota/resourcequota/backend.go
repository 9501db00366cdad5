// Package resourcequota is the quota backend "resourcequota": the group of a unit is
// its namespace, and every ResourceQuota there that counts the unit's pods has to have
// room for them.
//
// The API server enforces the same quotas, on all pods of the namespace, when they are
// created. So what is promised to a unit has to be there for its pods: they are weighed
// beside those of everybody else.
//
// Words. A dimension is one thing that pods use, as "requests.cpu", by pods of one
// class; a class is what scopes distinguishes. A space is a key that one quota limits. An
// owner is an object that pods belong to, directly or through other objects; a holder
// is an owner to which units are charged. Pods that no holder owns are others.
//
// Invariants. In each space
//
//   - held is the sum, over the holders, of the greater of what they are charged and
//     what their pods use, and of what others use;
//   - coming is the sum, over the holders, of what they are charged beyond what their
//     pods use;
//   - a demand fits when it fits both below hard - held and below hard - used -
//     coming, where hard and used are what the quota itself says.
//
// The two say the same once everything has been seen. One of them is behind when the
// quota's status is, or when pods have not been seen yet: the one that allows less
// decides, so that a released unit finds its room.
//
// Sums are exact and cannot overflow. A Backend is not safe for concurrent use.
package resourcequota

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var _ quota.Observer = (*Backend)(nil)

// Backend holds a group for each namespace.
type Backend struct {
	names      *resources.Names
	jobs       resources.ID
	dimensions map[resources.ID]dimension
	namespaces map[string]*group
	// groups by their nodes; listed are those with quotas, by name.
	groups []*group
	listed []quota.Group
}

// New knows of no quota and no pod. Names must be those that demands are made with.
func New(names *resources.Names) *Backend {
	return &Backend{names: names, jobs: names.ID(quota.JobsResource),
		dimensions: map[resources.ID]dimension{}, namespaces: map[string]*group{}}
}

// What a Backend takes in by Observe.
type (
	// QuotaSeen: a ResourceQuota is there, or has changed.
	QuotaSeen struct{ Quota *corev1.ResourceQuota }
	// QuotaGone: a ResourceQuota was deleted.
	QuotaGone struct{ Namespace, Name string }
	// PodSeen: a pod is there, or has changed.
	PodSeen struct {
		Namespace, UID string
		// Owner is the UID of the object that it belongs to; empty for none.
		Owner string
		// Use of the pod, made by Backend.Vector.
		Use resources.Vector
	}
	// OwnerSeen: an object that pods may belong to is there, or has changed.
	OwnerSeen struct {
		Namespace, UID string
		// Owner is the UID of the object that it belongs to itself.
		Owner string
	}
	// Gone: a pod, or an object that pods may belong to, was deleted.
	Gone struct{ Namespace, UID string }
)

// Observe takes in one of the above; anything else changes nothing.
func (b *Backend) Observe(seen any) quota.Effect {
	switch seen := seen.(type) {
	case QuotaSeen:
		return b.setLimits(b.group(seen.Quota.Namespace), seen.Quota.Name, read(seen.Quota))
	case QuotaGone:
		return b.setLimits(b.group(seen.Namespace), seen.Name, nil)
	case PodSeen:
		g := b.group(seen.Namespace)
		return g.freeing(func() { g.seePod(seen.UID, seen.Owner, seen.Use) })
	case OwnerSeen:
		g := b.group(seen.Namespace)
		return g.freeing(func() { g.seeOwner(seen.UID, seen.Owner) })
	case Gone:
		g := b.group(seen.Namespace)
		return g.freeing(func() { g.gone(seen.UID) })
	}
	return quota.Effect{}
}

// group of the namespace, which is made if there is none.
func (b *Backend) group(namespace string) *group {
	g := b.namespaces[namespace]
	if g == nil {
		g = newGroup(b, namespace, quota.NodeID(len(b.groups)))
		b.namespaces[namespace] = g
		b.groups = append(b.groups, g)
	}
	return g
}

// setLimits has a quota say something else; nil when it is gone.
func (b *Backend) setLimits(g *group, name string, now *limits) quota.Effect {
	if before := g.quotas[name]; now != nil && now.same(before) {
		return g.freeing(func() { g.setUsed(name, now) })
	}
	if now == nil {
		delete(g.quotas, name)
	} else {
		g.quotas[name] = now
	}
	g.rebuild()
	b.list(g)
	return quota.Effect{Changed: g}
}

// list puts the group among those with quotas, or takes it out.
func (b *Backend) list(g *group) {
	at, is := slices.BinarySearchFunc(b.listed, g.namespace, func(l quota.Group, namespace string) int {
		return strings.Compare(l.Path(), namespace)
	})
	switch {
	case len(g.quotas) > 0 && !is:
		b.listed = slices.Insert(b.listed, at, quota.Group(g))
	case len(g.quotas) == 0 && is:
		b.listed = slices.Delete(b.listed, at, at+1)
	}
}

// Place finds the group of the namespace, which always is there; what name a unit
// gives its quota does not matter here.
func (b *Backend) Place(namespace, _ string) (quota.Group, *quota.Refusal) {
	return b.group(namespace), nil
}

// Groups are the namespaces that have a ResourceQuota, by name.
func (b *Backend) Groups() []quota.Group { return b.listed }

// Nearest is nil: each unit belongs to the group of its namespace.
func (b *Backend) Nearest(string) quota.Group { return nil }

// Room of a space.
func (b *Backend) Room(space quota.Space) int64 {
	if int(space.Node) < len(b.groups) {
		if s := b.groups[space.Node].byID[space.Resource]; s != nil {
			return s.room()
		}
	}
	return math.MaxInt64
}

// Share is none: namespaces have nothing to share with each other.
func (b *Backend) Share(quota.NodeID, quota.Demand) quota.Share {
	return quota.Share{Kind: quota.OfNothing}
}

// Usage is what is charged in each namespace.
func (b *Backend) Usage() []quota.NodeUsage {
	all := make([]quota.NodeUsage, 0, len(b.groups))
	for _, g := range b.groups {
		usage := quota.NodeUsage{Path: g.namespace, Jobs: g.charged[b.jobs].Clamp()}
		for _, a := range g.charged.vector() {
			if a.ID != b.jobs {
				usage.Used = append(usage.Used, a)
			}
		}
		all = append(all, usage)
	}
	return all
}
