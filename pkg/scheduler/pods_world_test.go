package scheduler_test

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/oracle"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// leftover is where a deleted unit that may have pods left was charged.
type leftover struct{ namespace, quotaName, quota string }

func placeOf(u *scheduler.Unit) leftover { return leftover{u.Namespace(), u.QuotaName, u.Quota} }

func jobOf(uid string) string   { return "job-" + uid }
func labelOf(uid string) string { return "label=" + uid }

// pod lets the informer report a pod immediately. The API objects can be behind or ahead of it, as in a cluster.
func (w *world) pod(p pods.Pod) {
	w.pods[p.UID] = p
	w.core.Apply(w.now, scheduler.PodChanged{Pod: p})
	w.check()
}

// podOf returns a pod of a unit's job that requests this many milli-CPU.
func (w *world) podOf(key, uid string, cpu int64) pods.Pod {
	u := w.units[key]
	return pods.Pod{Namespace: u.Namespace(), UID: uid, Owner: u.Owner, Requests: resources.Vector{}.With(w.names.ID("cpu"), cpu)}
}

func (w *world) podGone(uid string) {
	p := w.pods[uid]
	delete(w.pods, uid)
	w.core.Apply(w.now, scheduler.PodGone{Namespace: p.Namespace, UID: uid})
	w.check()
}

// requested sums the requests of pods with one of these owners, without those that are being deleted if the world is
// lasting.
func (w *world) requested(namespace string, isOwner func(pods.Pod) bool) resources.Vector {
	sums := map[resources.ID]int64{}
	for _, p := range w.pods {
		if p.Namespace == namespace && isOwner(p) && !(w.lasting && p.Terminating) {
			for _, a := range p.Requests {
				sums[a.ID] += a.Value
			}
		}
	}
	var v resources.Vector
	for id, sum := range sums {
		v = v.With(id, sum)
	}
	return v
}

// had reports whether a unit can have pods.
func had(u *scheduler.Unit) bool {
	return holds(u) || u.Restored || u.Attempts > 0 || u.Checking != nil && u.Checking.Reservations > 0
}

// oracle returns the tree in force, charged with everything that holds quota according to the API objects, and with
// what the core has reserved.
func (w *world) oracle() *oracle.Tree {
	o := oracle.New(w.names, w.root, big.NewRat(1, 1))
	o.Reserving = w.treeOpts.PauseBorrowing || w.treeOpts.Reclaim
	fresh := w.fresh()
	w.eachCharge(fresh, func(g quota.Group, c quota.Charge) {
		o.Charged = append(o.Charged, oracle.Charged{Path: g.Path(), Gone: g.Queue() == "", Charge: c})
	})
	o.Reserved = w.reserved()
	return o
}

// reserved returns what the core has reserved.
func (w *world) reserved() map[oracle.Place]int64 {
	reserved := map[oracle.Place]int64{}
	for i, usage := range w.tree.Usage() {
		for id := range resources.ID(w.names.Len()) {
			space := quota.Space{Node: quota.NodeID(i), Resource: id}
			room := w.tree.Room(space)
			space.Bound = quota.Lending
			if bound := w.tree.Room(space); bound != math.MaxInt64 {
				reserved[oracle.Place{Path: usage.Path, Resource: w.names.Name(id)}] = room - bound
			}
		}
	}
	return reserved
}

// chargePods charges the units and pods in the API objects to the tree.
func (w *world) chargePods(t *tree.Tree) {
	w.eachCharge(t, func(g quota.Group, c quota.Charge) { g.Charge(&c) })
}

// eachCharge calls do for each charge according to the API objects.
func (w *world) eachCharge(t *tree.Tree, do func(quota.Group, quota.Charge)) {
	known := map[string]bool{}
	charge := func(namespace, quotaName, path string, c quota.Charge) {
		if len(c.Demand.Requests) == 0 && len(c.Pods) == 0 {
			return
		}
		group, refusal := t.Place(namespace, quotaName)
		if refusal != nil {
			group = t.Nearest(path)
		}
		do(group, c)
	}
	for _, u := range w.units {
		if had(u) {
			known[u.Owner], known[u.Label] = true, true
		}
		charge(u.Namespace(), u.QuotaName, u.Quota, w.chargeOf(u))
	}
	for uid, was := range w.left {
		known[jobOf(uid)], known[labelOf(uid)] = true, true
		charge(was.namespace, was.quotaName, was.quota, quota.Charge{Demand: quota.Demand{Preemptible: true},
			Pods: w.requested(was.namespace, func(p pods.Pod) bool { return p.Owner == jobOf(uid) || p.Owner == labelOf(uid) })})
	}
	for _, p := range w.pods {
		if group := t.Unqueued(p.Namespace); p.Stray && !known[p.Owner] && group != nil && !(w.lasting && p.Terminating) {
			do(group, quota.Charge{Demand: quota.Demand{Preemptible: true}, Pods: p.Requests, Unqueued: true})
		}
	}
}

// chargeOf returns the charge of a unit and its pods according to the API objects.
func (w *world) chargeOf(u *scheduler.Unit) quota.Charge {
	c := quota.Charge{Demand: quota.Demand{Preemptible: u.Demand.Preemptible}}
	if holds(u) {
		c.Demand = asked(u)
	}
	if had(u) {
		c.Pods = w.requested(u.Namespace(), func(p pods.Pod) bool { return p.Owner == u.Owner || p.Owner == u.Label })
	}
	return c
}

// eachUnitCharge calls do for each unit that is charged to a group.
func (w *world) eachUnitCharge(t *tree.Tree, do func(*scheduler.Unit, quota.Group, *quota.Charge)) {
	for _, key := range slices.Sorted(maps.Keys(w.units)) {
		u := w.units[key]
		if c := w.chargeOf(u); !c.Empty() {
			if group, refusal := t.Place(u.Namespace(), u.QuotaName); refusal == nil {
				do(u, group, &c)
			}
		}
	}
}

// podActions are what pods do by themselves.
func (w *world) podActions(actions map[string]func(*rapid.T), pick func(string) string) {
	pickPod := func(t *rapid.T) pods.Pod {
		if len(w.pods) == 0 {
			t.Skip("no pod")
		}
		return w.pods[rapid.SampledFrom(slices.Sorted(maps.Keys(w.pods))).Draw(t, "pod")]
	}
	requests := func(t *rapid.T) resources.Vector {
		var v resources.Vector
		for _, a := range w.demand(drawRequest(t)).Requests {
			if w.names.Name(a.ID) != quota.JobsResource {
				v = append(v, a)
			}
		}
		return v
	}
	actions["a pod is created"] = func(t *rapid.T) {
		u := w.units[pick("unit")]
		if !had(u) { // a job has no pods before its release
			return
		}
		w.version++
		w.pod(pods.Pod{Namespace: u.Namespace(), UID: fmt.Sprint("pod-", w.version), Owner: u.Owner, Requests: requests(t),
			Unschedulable: rapid.SampledFrom([]string{"", "", "no cpu", "no gpu"}).Draw(t, "unschedulable")})
	}
	actions["a pod gets a node"] = func(t *rapid.T) {
		p := pickPod(t)
		p.Unschedulable = ""
		w.pod(p)
	}
	actions["a notebook is created"] = func(t *rapid.T) {
		w.version++
		w.pod(pods.Pod{Namespace: rapid.SampledFrom([]string{"a", "b", "nowhere", "kube-system"}).Draw(t, "namespace"),
			UID: fmt.Sprint("pod-", w.version), Requests: requests(t), Stray: true})
	}
	actions["a pod ends"] = func(t *rapid.T) {
		p := pickPod(t)
		p.Requests = nil
		w.pod(p)
	}
	actions["a pod is resized"] = func(t *rapid.T) {
		p := pickPod(t)
		p.Requests = requests(t)
		w.pod(p)
	}
	actions["a pod is orphaned"] = func(t *rapid.T) {
		p := pickPod(t)
		for _, u := range w.units {
			if u.Owner == p.Owner {
				p.Owner, p.Stray = u.Label, true
				w.pod(p)
				return
			}
		}
	}
	// A user who can write a pod can make it name anything. It stays charged where it was, because the objects do not
	// change here.
	actions["a pod names another owner"] = func(t *rapid.T) {
		p := pickPod(t)
		if p.Owner == "" {
			return
		}
		p.Owner = rapid.SampledFrom([]string{"", "nothing", "label=nothing"}).Draw(t, "owner")
		w.core.Apply(w.now, scheduler.PodChanged{Pod: p})
		w.check()
	}
	actions["a pod is being deleted"] = func(t *rapid.T) {
		p := pickPod(t)
		p.Terminating = true
		w.pod(p)
	}
	actions["a pod is gone"] = func(t *rapid.T) { w.podGone(pickPod(t).UID) }
}
