package pods

import "kube-queue.dev/kube-queue/pkg/resources"

// maxDepth bounds the number of objects between a pod and its holder, because owner references may
// form cycles.
const maxDepth = 8

// namespace contains the objects of a namespace. An owner and what belongs to it are always in the
// same namespace.
type namespace struct {
	ledger  *Ledger
	name    string
	objects map[string]*object
	strays  sum
}

// object is a pod, or something that pods can belong to.
type object struct {
	id string
	// above is the owner that it counts through. named is the owner that it names now, which may be another one.
	above *object
	named string
	below map[*object]struct{}
	// seen is whether the object itself is known to exist. owns is whether something ever belonged to it.
	seen, owns bool
	// holds is whether the object is a holder. exempts is whether it is exempt, and exempted whether it ever was. sum
	// is what its pods request; nil if it never was a holder or exempt.
	holds, exempts, exempted bool
	sum                      *sum

	// pod is set if it is a pod. holder is the holder that it counts for; nil if none. counted is what counts, for
	// the holder or as a stray.
	pod     *podFacts
	holder  *object
	counted *podFacts
}

// podFacts never change.
type podFacts struct {
	requests                 resources.Vector
	shared                   []Shared
	idle, terminating, stray bool
	unschedulable            string
}

func (n *namespace) object(id string) *object {
	o := n.objects[id]
	if o == nil {
		o = &object{id: id}
		n.objects[id] = o
	}
	return o
}

// nearestHolder returns the nearest of the object and its owners that is a holder or exempt; nil if there is none.
func (o *object) nearestHolder() *object {
	for depth := 0; o != nil && depth <= maxDepth; depth++ {
		if o.holds || o.exempts {
			return o
		}
		o = o.above
	}
	return nil
}

// isHeld reports whether pods of the object count for a holder.
func (o *object) isHeld() bool {
	holder := o.nearestHolder()
	return holder != nil && holder.holds
}

// attach records that the object names this owner. Anyone who can write an object can make it name any owner, so it
// never leaves an owner that leads to a holder. An owner that leads nowhere may belong to something that has not been
// seen yet, so the object leaves it only for an owner that leads to a holder.
func (n *namespace) attach(o *object, owner string) {
	o.named = owner
	isFree := o.above == nil || o.above.exempted
	if !o.above.isHeld() && (isFree || n.objects[owner].isHeld()) {
		n.link(o, owner)
	}
}

// link sets the owner that the object counts through.
func (n *namespace) link(o *object, owner string) {
	switch {
	case o.above == nil && owner == "", o.above != nil && o.above.id == owner:
		return
	}
	before := o.above
	if before != nil {
		o.above = nil
		delete(before.below, o)
	}
	if owner != "" {
		o.above = n.object(owner)
		if o.above.below == nil {
			o.above.below = map[*object]struct{}{}
		}
		o.above.below[o] = struct{}{}
		o.above.owns = true
	}
	n.recount(o, 0)
	n.sweep(o, 0)
	n.drop(before)
}

// set sets whether the object is a holder, and whether it is exempt.
func (n *namespace) set(o *object, holds, exempts bool) {
	if o.holds != holds || o.exempts != exempts {
		o.holds, o.exempts, o.exempted = holds, exempts, o.exempted || exempts
		if o.sum == nil {
			o.sum = &sum{}
		}
		if o.sum.pods > 0 {
			n.ledger.changed[Holder{Namespace: n.name, UID: o.id}] = struct{}{}
		}
		n.recount(o, 0)
		n.sweep(o, 0)
	}
	n.drop(o)
}

// recount assigns each pod at and below the object to its nearest holder.
func (n *namespace) recount(o *object, depth int) {
	if o.pod != nil {
		if holder := o.nearestHolder(); holder != o.holder {
			n.count(o, holder, o.pod)
		}
	}
	if depth == maxDepth {
		return
	}
	for below := range o.below {
		n.recount(below, depth+1)
	}
}

// count sets the facts of the pod that count, and the holder that they count for. facts is nil if the pod no longer
// counts.
func (n *namespace) count(pod *object, holder *object, facts *podFacts) {
	if pod.counted != nil {
		n.add(pod.holder, pod.counted, false)
	}
	pod.holder, pod.counted = holder, facts
	if facts != nil {
		n.add(holder, facts, true)
	}
}

// add adds a pod to the sum of its holder, or subtracts it.
func (n *namespace) add(holder *object, facts *podFacts, plus bool) {
	h := Holder{Namespace: n.name}
	to := &n.strays
	if holder != nil {
		h.UID, to = holder.id, holder.sum
	} else if !facts.stray {
		return
	}
	to.include(facts, plus)
	n.ledger.changed[h] = struct{}{}
}

// drop removes an object, and then its owners, once nothing refers to them.
func (n *namespace) drop(o *object) {
	for o != nil && o.isForgotten() {
		delete(n.objects, o.id)
		above := o.above
		if above != nil {
			o.above = nil
			delete(above.below, o)
		}
		o = above
	}
	if len(n.objects) == 0 {
		delete(n.ledger.namespaces, n.name)
	}
}

// isForgotten reports whether the object can be forgotten. An owner is known as long as its holder, because it may
// have created pods just before it was deleted.
func (o *object) isForgotten() bool {
	return !o.seen && !o.holds && !o.exempts && len(o.below) == 0 && !(o.owns && o.nearestHolder() != nil)
}

// sweep drops deleted owners below an object. They may have lost their holder.
func (n *namespace) sweep(o *object, depth int) {
	if depth == maxDepth {
		return
	}
	for below := range o.below {
		n.sweep(below, depth+1)
		n.drop(below)
	}
}
