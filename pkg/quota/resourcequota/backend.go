// Package resourcequota is the quota backend "resourcequota": the quota group of a unit is its
// namespace, and every ResourceQuota there that counts the pods of the unit must have room for them.
//
// The API server enforces the same quotas on all pods of the namespace when they are created. Therefore the
// quota that a unit was admitted to must be free for its pods, and all other pods count as well.
//
// Terms. A dimension is one thing that pods of one class use, such as "requests.cpu". A class is
// what scopes distinguish. A space is a key that one quota limits.
//
// Invariants. In each space
//
//   - held is the sum, over all charges, of the greater of what was admitted and what the pods use;
//   - coming is the sum, over all charges, of what was admitted beyond what the pods use;
//   - a demand fits if it fits below both hard - held and hard - used - coming, where hard and used are
//     those of the quota object.
//
// Both are equal once everything has been observed. They differ while the status of the quota lags
// behind or while pods have not been observed yet. The smaller one decides, so that the pods of a
// released job fit.
//
// Objects other than pods do not count: what else operators create depends on their versions, and
// remains when a job has ended. The limit is the lower of spec.hard and status.hard, because the API
// server checks pods against the status.
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

var (
	_ quota.Observer  = (*Backend)(nil)
	_ quota.Forgetter = (*Backend)(nil)
)

// Backend has a group for each namespace.
type Backend struct {
	names      *resources.Names
	jobs       resources.ID
	dimensions map[resources.ID]dimension
	namespaces map[string]*group
	// groups are indexed by their nodes. They contain nil for each node in free, which has the largest first.
	groups []*group
	free   []quota.NodeID
	// listed are the groups with quotas, by name.
	listed []quota.Group
}

// New returns a Backend without quotas and pods. Demands must be built with the same Names.
func New(names *resources.Names) *Backend {
	return &Backend{names: names, jobs: names.ID(quota.JobsResource),
		dimensions: map[resources.ID]dimension{}, namespaces: map[string]*group{}}
}

// The observations that a Backend processes.
type (
	// QuotaSeen means that a ResourceQuota exists or has changed.
	QuotaSeen struct {
		Quota *corev1.ResourceQuota
		// Keys maps keys of the quota to the keys that pods count by, if these differ.
		Keys map[string]string
	}
	// QuotaGone means that a ResourceQuota was deleted.
	QuotaGone struct{ Namespace, Name string }
)

// Observe processes one of the observations above. It ignores anything else.
func (b *Backend) Observe(seen any) quota.Effect {
	switch seen := seen.(type) {
	case QuotaSeen:
		return b.setLimits(b.group(seen.Quota.Namespace), seen.Quota.Name, read(seen.Quota, seen.Keys))
	case QuotaGone:
		return b.setLimits(b.group(seen.Namespace), seen.Name, nil)
	}
	return quota.Effect{}
}

// group returns the group of the namespace. It creates the group if necessary.
func (b *Backend) group(namespace string) *group {
	if g := b.namespaces[namespace]; g != nil {
		return g
	}
	node := quota.NodeID(len(b.groups))
	if last := len(b.free) - 1; last >= 0 {
		node, b.free = b.free[last], b.free[:last]
	} else {
		b.groups = append(b.groups, nil)
	}
	g := newGroup(b, namespace, node)
	b.namespaces[namespace], b.groups[node] = g, g
	return g
}

// setLimits sets the limits of a quota, or removes the quota if they are nil.
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

// list adds the group to the groups with quotas, or removes it.
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

// Place returns the group of the namespace, which always exists. It ignores the quota name of a unit.
func (b *Backend) Place(namespace, _ string) (quota.Group, *quota.Refusal) {
	return b.group(namespace), nil
}

// Groups returns the namespaces that have a ResourceQuota, by name.
func (b *Backend) Groups() []quota.Group { return b.listed }

// Nearest returns nil because each unit belongs to the group of its namespace.
func (b *Backend) Nearest(string) quota.Group { return nil }

// Unqueued returns the group of the namespace, because quotas limit all pods.
func (b *Backend) Unqueued(namespace string) quota.Group { return b.group(namespace) }

// Room returns the room in a space.
func (b *Backend) Room(space quota.Space) int64 {
	if int(space.Node) < len(b.groups) && b.groups[space.Node] != nil {
		if s := b.groups[space.Node].byID[space.Resource]; s != nil {
			return s.roomIn(space.Bound)
		}
	}
	return math.MaxInt64
}

// Share returns no share because namespaces share nothing with each other.
func (b *Backend) Share(quota.Branch, quota.Demand) quota.Share {
	return quota.Share{Kind: quota.OfNothing}
}

// Usage returns what is charged in each namespace. Pods whose class differs from that of their pod set count in
// addition to it.
func (b *Backend) Usage() []quota.NodeUsage {
	all := make([]quota.NodeUsage, len(b.groups))
	for i, g := range b.groups {
		if g != nil {
			all[i] = quota.NodeUsage{Path: g.namespace, Jobs: g.charged[b.jobs].Clamp(),
				Used: g.charged.vector(b.jobs), Unqueued: g.unqueued.vector(b.jobs)}
		}
	}
	return all
}
