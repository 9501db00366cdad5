package pods

import (
	"fmt"
	"maps"
	"slices"
)

// View reads a Ledger.
type View interface {
	// Known returns what is known of a pod, or false if nothing is.
	Known(namespace, uid string) (Pod, bool)
	// OwnerOf returns the owner that an object other than a pod names; empty if the object is not known or names
	// none.
	OwnerOf(namespace, uid string) string
	// IsExempt reports whether an object is exempt, so that its pods do not count.
	IsExempt(namespace, id string) bool
	// EachPod calls visit with each pod, in no particular order.
	EachPod(visit func(Pod))
}

var _ View = (*Ledger)(nil)

// Known returns what is known of a pod, or false if nothing is.
func (l *Ledger) Known(namespace, uid string) (Pod, bool) {
	o := l.find(namespace, uid)
	if o == nil || o.pod == nil {
		return Pod{}, false
	}
	return o.asPod(namespace), true
}

// OwnerOf returns the owner that an object names; empty if none is known.
func (l *Ledger) OwnerOf(namespace, uid string) string {
	if o := l.find(namespace, uid); o != nil {
		return o.named
	}
	return ""
}

// IsExempt reports whether an object is exempt, so that its pods do not count.
func (l *Ledger) IsExempt(namespace, id string) bool {
	o := l.find(namespace, id)
	return o != nil && o.exempts
}

func (l *Ledger) find(namespace, id string) *object {
	if n := l.namespaces[namespace]; n != nil {
		return n.objects[id]
	}
	return nil
}

// EachPod calls visit with each pod, in no particular order.
func (l *Ledger) EachPod(visit func(Pod)) {
	for _, n := range l.namespaces {
		for _, o := range n.objects {
			if o.pod != nil {
				visit(o.asPod(n.name))
			}
		}
	}
}

func (o *object) asPod(namespace string) Pod {
	return Pod{Namespace: namespace, UID: o.id, Owner: o.named, Requests: o.pod.requests, Shared: o.pod.shared, Idle: o.pod.idle, Terminating: o.pod.terminating, Stray: o.pod.stray, Unschedulable: o.pod.unschedulable}
}

// Audit recomputes the sum of each holder from its pods, and returns an error for each sum that differs. It takes time
// proportional to the number of pods.
func (l *Ledger) Audit() (broken []error) {
	sums := map[Holder]*sum{}
	for name, n := range l.namespaces {
		for _, o := range n.objects {
			if o.pod == nil {
				continue
			}
			h := Holder{Namespace: name}
			if holder := o.nearestHolder(); holder != nil {
				h.UID = holder.id
			} else if !o.pod.stray {
				continue
			}
			if sums[h] == nil {
				sums[h] = &sum{}
			}
			sums[h].include(o.pod, true)
		}
	}
	compare := func(h Holder, have *sum) {
		want := sums[h]
		if want == nil {
			want = &sum{}
		}
		if have.pods != want.pods || have.busy != want.busy || have.live != want.live || !maps.Equal(have.unschedulable, want.unschedulable) || !have.all.vector().Equal(want.all.vector()) || !have.lasting.vector().Equal(want.lasting.vector()) {
			broken = append(broken, fmt.Errorf("holder %s/%s: %d pods are counted with requests %v, but there are %d with %v",
				h.Namespace, h.UID, have.pods, have.all.vector(), want.pods, want.all.vector()))
		}
	}
	for name, n := range l.namespaces {
		compare(Holder{Namespace: name}, &n.strays)
		for _, o := range n.objects {
			if o.sum != nil {
				compare(Holder{Namespace: name, UID: o.id}, o.sum)
			}
		}
	}
	return broken
}

// Same reports whether both are equal in everything that counts.
func (p *Pod) Same(other *Pod) bool {
	return p.Owner == other.Owner && p.Idle == other.Idle && p.Terminating == other.Terminating && p.Stray == other.Stray && p.Unschedulable == other.Unschedulable && p.Requests.Equal(other.Requests) &&
		slices.EqualFunc(p.Shared, other.Shared, Shared.same)
}
