package quota

import "kube-queue.dev/kube-queue/pkg/resources"

// Charge is what one holder of quota uses: for each resource, the greater of what it was admitted with and what its
// pods request.
//
// The holder is a unit, a deleted unit with pods left, or the pods of a namespace that belong to no unit. A Charge
// must not be changed while it is charged.
type Charge struct {
	// Demand is what was admitted. Its requests are empty if the holder was never admitted, or no longer holds the
	// quota that it was admitted to.
	Demand Demand
	// Pods is the sum of the requests of pods that have not ended.
	Pods resources.Vector
	// Unqueued is whether the pods belong to no unit.
	Unqueued bool
}

// Total returns what is charged, by resource.
func (c *Charge) Total() resources.Vector { return c.Demand.Requests.Max(c.Pods) }

// Empty reports whether nothing is charged.
func (c *Charge) Empty() bool { return len(c.Demand.Requests) == 0 && len(c.Pods) == 0 }

// Same reports whether both charge the same.
func (c *Charge) Same(d *Charge) bool {
	return c.Demand.Equal(d.Demand) && c.Pods.Equal(d.Pods) && c.Unqueued == d.Unqueued
}
