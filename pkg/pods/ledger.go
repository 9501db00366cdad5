// Package pods attributes the requests of pods to the jobs that they belong to.
//
// Terms. An object is a pod, or something that pods can belong to: a job, an object between a job and its pods, such
// as the Job of a JobSet, or the value of a label that identifies a job. A holder is an object that was declared with
// Hold, because it uses quota. A pod counts for the nearest holder among the objects that it belongs to. A stray is a
// pod without a holder that counts anyway, for its namespace. An exempt object is one whose pods do not count.
//
// Invariants. What a holder requests is the exact sum of the requests of the pods that count for it. An object is
// forgotten when it does not exist, is not a holder, and nothing belongs to it. If something ever belonged to it, it
// is known until its holder is dropped: a driver may be deleted while it creates pods.
//
// A pod that counts for a holder keeps counting for a holder as long as it exists and no holder is dropped, no matter
// how its owners, or theirs, are changed later: an object keeps the owner that leads to a holder. Otherwise the order
// in which objects are seen does not matter.
//
// Sums are exact and cannot overflow; amounts in a Vector are capped at the largest int64. A Ledger is not safe for
// concurrent use.
package pods

import (
	"maps"
	"slices"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Pod describes a pod to a Ledger.
type Pod struct {
	Namespace, UID string
	// Owner identifies the object that the pod belongs to; empty if none.
	Owner string
	// Requests of the pod. If it is Idle, they are empty, or count it as an object.
	Requests resources.Vector
	// Shared are the requests that it shares with other pods.
	Shared []Shared
	// Idle is whether the pod has ended or waits at the gate of kube-queue.
	Idle bool
	// Terminating is whether the pod is being deleted.
	Terminating bool
	// Stray is whether the pod counts for its namespace while it has no holder.
	Stray bool
	// Unschedulable is why the scheduler finds no node for the pod; empty if it has one, or was not tried.
	Unschedulable string
}

// Shared is a request that any number of pods share, for example through a claim. It counts once for each holder.
type Shared struct {
	Key string
	// Mixed counts instead of Requests if the pods of the holder request different resources.
	Requests, Mixed resources.Vector
}

func (s Shared) same(other Shared) bool {
	return s.Key == other.Key && s.Requests.Equal(other.Requests) && s.Mixed.Equal(other.Mixed)
}

// Holder identifies a holder, or the strays of a namespace if UID is empty.
type Holder struct{ Namespace, UID string }

// Ledger attributes pods to holders.
type Ledger struct {
	namespaces map[string]*namespace
	changed    map[Holder]struct{}
}

// New returns a Ledger without pods and holders.
func New() *Ledger {
	return &Ledger{namespaces: map[string]*namespace{}, changed: map[Holder]struct{}{}}
}

// Pod records a new or changed pod.
func (l *Ledger) Pod(p Pod) {
	n := l.namespace(p.Namespace)
	pod := n.object(p.UID)
	if pod.pod != nil {
		if known := pod.asPod(n.name); known.Same(&p) { // most events of a pod change only its status
			return
		}
	}
	n.count(pod, pod.holder, nil)
	pod.seen = true
	pod.pod = &podFacts{requests: p.Requests, shared: p.Shared, idle: p.Idle, terminating: p.Terminating, stray: p.Stray, unschedulable: p.Unschedulable}
	n.attach(pod, p.Owner)
	n.count(pod, pod.nearestHolder(), pod.pod)
}

// Object records a new or changed object that pods can belong to. The owner identifies the object that it belongs to;
// empty if none. An object without an owner matters only if something belongs to it, and need not be reported.
func (l *Ledger) Object(name, id, owner string) {
	n := l.namespaces[name]
	if owner == "" && (n == nil || n.objects[id] == nil) {
		return
	}
	n = l.namespace(name)
	o := n.object(id)
	o.seen = true
	n.attach(o, owner)
}

// Gone records that a pod or another object was deleted. The owner of the object remains known while something
// belongs to the object and, if something ever did, while it has a holder.
func (l *Ledger) Gone(name, id string) {
	o := l.find(name, id)
	if o == nil {
		return
	}
	n := l.namespaces[name]
	n.count(o, nil, nil)
	o.seen, o.pod = false, nil
	n.set(o, o.holds, false)
}

// Label records that the object has a label. Pods that have lost their controller name their owner by the label. If
// the label already leads to a holder, that one keeps it.
func (l *Ledger) Label(name, label, id string) {
	if label == "" {
		return
	}
	n := l.namespace(name)
	if o := n.object(label); o.above.nearestHolder() == nil {
		o.seen, o.named = true, id
		n.link(o, id)
	}
}

// Unlabel reverts Label, unless the label belongs to a holder.
func (l *Ledger) Unlabel(name, label string) {
	n := l.namespaces[name]
	if n == nil || n.objects[label] == nil {
		return
	}
	if above := n.objects[label].above; above == nil || !above.holds {
		l.Gone(name, label)
	}
}

// Hold declares a holder.
func (l *Ledger) Hold(h Holder) {
	n := l.namespace(h.Namespace)
	o := n.object(h.UID)
	n.set(o, true, o.exempts)
}

// Drop reverts Hold.
func (l *Ledger) Drop(h Holder) {
	if o := l.find(h.Namespace, h.UID); o != nil {
		l.namespaces[h.Namespace].set(o, false, o.exempts)
	}
}

// Exempt declares that the pods of an object do not count unless it is a holder, or reverts that.
func (l *Ledger) Exempt(name, id string, exempt bool) {
	if !exempt && l.find(name, id) == nil {
		return
	}
	n := l.namespace(name)
	o := n.object(id)
	n.set(o, o.holds, exempt)
}

// Pods returns the number of pods that count for the holder, ended pods included.
func (l *Ledger) Pods(h Holder) int {
	if s := l.sumOf(h); s != nil {
		return s.pods
	}
	return 0
}

// Busy is like Pods, but without the pods that are idle.
func (l *Ledger) Busy(h Holder) int {
	if s := l.sumOf(h); s != nil {
		return s.busy
	}
	return 0
}

// Requested returns the requests of the holder's pods, or of the strays of a namespace.
func (l *Ledger) Requested(h Holder) resources.Vector {
	s := l.sumOf(h)
	if s == nil {
		return nil
	}
	return s.all.vector()
}

// Unschedulable returns how many pods of the holder the scheduler finds no node for, how many pods there are, and the
// most common message. Pods that are being deleted do not count.
func (l *Ledger) Unschedulable(h Holder) (unschedulable, of int, message string) {
	s := l.sumOf(h)
	if s == nil {
		return 0, 0, ""
	}
	most := 0
	for text, n := range s.unschedulable {
		if n > most || n == most && text < message {
			most, message = n, text
		}
		unschedulable += n
	}
	return unschedulable, s.live, message
}

// Lasting is like Requested, but without the pods that are being deleted.
func (l *Ledger) Lasting(h Holder) resources.Vector {
	s := l.sumOf(h)
	if s == nil {
		return nil
	}
	return s.lasting.vector()
}

func (l *Ledger) sumOf(h Holder) *sum {
	n := l.namespaces[h.Namespace]
	if n == nil {
		return nil
	}
	if h.UID == "" {
		return &n.strays
	}
	if o := n.objects[h.UID]; o != nil && o.holds {
		return o.sum
	}
	return nil
}

// Namespaces returns the namespaces with strays, in order.
func (l *Ledger) Namespaces() []string {
	var names []string
	for name, n := range l.namespaces {
		if len(n.strays.all.amounts) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Changed returns the holders for which Requested or Lasting may have changed since the last call, in
// no particular order.
func (l *Ledger) Changed() []Holder {
	if len(l.changed) == 0 {
		return nil
	}
	changed := slices.AppendSeq(make([]Holder, 0, len(l.changed)), maps.Keys(l.changed))
	clear(l.changed)
	return changed
}

func (l *Ledger) namespace(name string) *namespace {
	n := l.namespaces[name]
	if n == nil {
		n = &namespace{ledger: l, name: name, objects: map[string]*object{}}
		l.namespaces[name] = n
	}
	return n
}

// Uses adds the resources that pods request to the set.
func (l *Ledger) Uses(used *resources.IDs) {
	for _, n := range l.namespaces {
		for _, o := range n.objects {
			if o.pod != nil {
				used.AddVector(o.pod.requests)
				for _, shared := range o.pod.shared {
					used.AddVector(shared.Requests)
					used.AddVector(shared.Mixed)
				}
			}
		}
	}
}
