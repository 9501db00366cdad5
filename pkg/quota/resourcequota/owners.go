package resourcequota

import (
	"maps"
	"slices"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// amounts are sums by dimension, without zeros.
type amounts map[resources.ID]resources.Sum

func (a amounts) add(v resources.Vector) {
	for _, amount := range v {
		a.set(amount.ID, a[amount.ID].Plus(amount.Value))
	}
}

func (a amounts) take(v resources.Vector) {
	for _, amount := range v {
		a.set(amount.ID, a[amount.ID].Minus(amount.Value))
	}
}

func (a amounts) set(id resources.ID, sum resources.Sum) {
	if sum == (resources.Sum{}) {
		delete(a, id)
	} else {
		a[id] = sum
	}
}

// vector returns the sums, clamped to an int64.
func (a amounts) vector() resources.Vector {
	v := make(resources.Vector, 0, len(a))
	for _, id := range slices.Sorted(maps.Keys(a)) {
		v = append(v, resources.Amount{ID: id, Value: a[id].Clamp()})
	}
	return v
}

// maxDepth bounds the number of objects between a pod and its holder, because owner references may
// form cycles.
const maxDepth = 8

// owner is an object in a namespace that may own pods, or a pod.
type owner struct {
	uid   string
	above *owner
	below map[*owner]struct{}
	// seen is whether the object itself is known to exist.
	seen bool

	// isPod is whether it is a pod. use is what the pod uses. holder is the holder that it counts
	// for; nil if none.
	isPod  bool
	use    resources.Vector
	holder *owner
	// counted is the part of the sums that comes from the pod.
	counted resources.Vector

	// units is the number of charged units. charged is the sum of their charges. pods is what the
	// pods use that count for this holder.
	units   int
	charged amounts
	pods    amounts
}

func (g *group) owner(uid string) *owner {
	o := g.owners[uid]
	if o == nil {
		o = &owner{uid: uid}
		g.owners[uid] = o
	}
	return o
}

// nearestHolder returns the nearest holder among the object and its owners.
func (o *owner) nearestHolder() *owner {
	for depth := 0; o != nil && depth <= maxDepth; depth++ {
		if o.units > 0 {
			return o
		}
		o = o.above
	}
	return nil
}

// attach sets the owner of the object.
func (g *group) attach(o *owner, uid string) {
	switch {
	case o.above == nil && uid == "", o.above != nil && o.above.uid == uid:
		return
	}
	if before := o.above; before != nil {
		o.above = nil
		delete(before.below, o)
		g.drop(before)
	}
	if uid != "" {
		o.above = g.owner(uid)
		if o.above.below == nil {
			o.above.below = map[*owner]struct{}{}
		}
		o.above.below[o] = struct{}{}
	}
	g.recount(o, 0)
}

// recount assigns each pod at and below the object to its nearest holder.
func (g *group) recount(o *owner, depth int) {
	if o.isPod {
		if holder := o.nearestHolder(); holder != o.holder {
			g.count(o, nil)
			o.holder = holder
			g.count(o, o.use)
		}
	}
	if depth == maxDepth {
		return
	}
	for below := range o.below {
		g.recount(below, depth+1)
	}
}

// count sets what the pod uses.
func (g *group) count(pod *owner, use resources.Vector) {
	before := pod.counted
	pod.counted = use
	if pod.holder == nil {
		g.others(before, use)
		return
	}
	g.holding(pod.holder, func() {
		pod.holder.pods.take(before)
		pod.holder.pods.add(use)
	})
}

func (g *group) seePod(uid, owner string, use resources.Vector) {
	pod := g.owner(uid)
	pod.seen, pod.isPod = true, true
	pod.use = use
	g.attach(pod, owner)
	g.recount(pod, maxDepth)
	g.count(pod, use)
}

// seeOwner processes the owner of an object. An object without an owner matters only if it is known
// already.
func (g *group) seeOwner(uid, owner string) {
	if owner == "" && g.owners[uid] == nil {
		return
	}
	o := g.owner(uid)
	o.seen = true
	g.attach(o, owner)
}

// gone removes an object. Its owner remains known while it still has pods.
func (g *group) gone(uid string) {
	o := g.owners[uid]
	if o == nil {
		return
	}
	if o.isPod {
		g.count(o, nil)
		o.isPod, o.use, o.holder = false, nil, nil
	}
	o.seen = false
	g.drop(o)
}

// drop removes an object, and then its owners, if nothing refers to them any more.
func (g *group) drop(o *owner) {
	for o != nil && !o.seen && o.units == 0 && len(o.below) == 0 {
		delete(g.owners, o.uid)
		above := o.above
		if above != nil {
			o.above = nil
			delete(above.below, o)
		}
		o = above
	}
}
