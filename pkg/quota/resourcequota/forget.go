package resourcequota

import (
	"slices"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Uses adds the spaces, and the dimensions of all charges, to the set.
func (b *Backend) Uses(used *resources.IDs) {
	used.Add(b.jobs)
	for _, g := range b.namespaces {
		for _, s := range g.spaces {
			used.Add(s.id)
		}
		for c := range g.charges {
			used.AddVector(c.Demand.Requests)
			used.AddVector(c.Pods)
		}
	}
}

// Forget forgets the dimensions that are no longer used, and the namespaces without quotas and charges.
func (b *Backend) Forget(used resources.IDs, isUsed func(quota.NodeID) bool) {
	// Go maps never shrink, so new ones are made.
	b.dimensions = keep(b.dimensions, used.Has)
	for _, g := range b.namespaces {
		for _, s := range g.spaces {
			s.weighs = keep(s.weighs, used.Has)
		}
	}
	for _, g := range b.groups {
		if g != nil && len(g.quotas) == 0 && len(g.charges) == 0 && !isUsed(g.nodes[0]) {
			b.groups[g.nodes[0]] = nil
		}
	}
	b.namespaces = keep(b.namespaces, func(name string) bool { return b.groups[b.namespaces[name].nodes[0]] != nil })
	b.listFree()
}

// listFree lists the nodes without a group.
func (b *Backend) listFree() {
	end := len(b.groups)
	for end > 0 && b.groups[end-1] == nil {
		end--
	}
	b.groups, b.free = slices.Clone(b.groups[:end]), nil
	for node, g := range slices.Backward(b.groups) {
		if g == nil {
			b.free = append(b.free, quota.NodeID(node))
		}
	}
}

// keep returns the entries of the map whose keys the function accepts.
func keep[K comparable, V any](m map[K]V, is func(K) bool) map[K]V {
	kept := map[K]V{}
	for key, value := range m {
		if is(key) {
			kept[key] = value
		}
	}
	return kept
}
