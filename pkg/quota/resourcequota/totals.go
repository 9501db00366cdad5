package resourcequota

import (
	"maps"
	"slices"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var _ quota.UsageAggregator = (*Backend)(nil)

// AggregatedUsage returns what is charged in each namespace, summed over the pods of all classes,
// and the lowest limit of the quotas of the namespace that count all pods. It omits quotas with
// scopes, because they limit only a part of this sum.
func (b *Backend) AggregatedUsage() []quota.NodeUsage {
	all := make([]quota.NodeUsage, 0, len(b.groups))
	for _, g := range b.groups {
		if g == nil {
			continue
		}
		usage := quota.NodeUsage{Path: g.namespace, Jobs: g.charged[b.jobs].Clamp()}
		most := map[resources.ID]int64{}
		for _, s := range g.spaces {
			id := b.names.ID(s.known)
			if lowest, limited := most[id]; len(s.quota.scopes) == 0 && (!limited || s.hard < lowest) {
				most[id] = s.hard
			}
		}
		usage.Used, usage.Unqueued = b.byKey(g.charged), b.byKey(g.unqueued)
		for _, id := range slices.Sorted(maps.Keys(most)) {
			usage.Max = append(usage.Max, resources.Amount{ID: id, Value: most[id]})
		}
		all = append(all, usage)
	}
	return all
}

// byKey returns the amounts of all classes by key.
func (b *Backend) byKey(of amounts) resources.Vector {
	sums := amounts{}
	for id, amount := range of {
		if d, is := b.dimensions[id]; is && d.unset == "" {
			id = b.names.ID(d.key)
			sums.set(id, sums[id].Add(amount))
		}
	}
	return sums.vector(b.jobs)
}
