package scheduler_test

import (
	"math/big"
	"slices"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree/oracle"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// elastic lets a unit start with some of its pods, which share its request equally.
func (w *world) elastic(least, count int32) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) {
		e := &scheduler.Elastic{PodSet: "workers", Min: least, Count: count}
		for _, a := range u.Demand.Requests {
			if each := a.Value / int64(count); w.names.Name(a.ID) != quota.JobsResource && each > 0 {
				e.Pod = e.Pod.With(a.ID, each)
			}
		}
		u.Elastic = e
	}
}

// resized adapts an elastic unit to its changed request.
func (w *world) resized(u *scheduler.Unit) {
	if e := u.Elastic; e != nil {
		w.elastic(e.Min, e.Count)(u)
		u.Elastic.Granted = e.Granted
	}
}

// granted sets the number of pods that a unit was admitted with.
func granted(u *scheduler.Unit, n int32) {
	if u.Elastic != nil {
		e := *u.Elastic
		e.Granted = n
		u.Elastic = &e
	}
}

// podsOf returns how many pods of its pod set an elastic unit was admitted with or, while it waits, requests at least.
func podsOf(u *scheduler.Unit) int32 {
	switch {
	case !holds(u):
		return u.Elastic.Min
	case u.Elastic.Granted == 0:
		return u.Elastic.Count
	default:
		return u.Elastic.Granted
	}
}

// asked returns what a unit was admitted with or, while it waits, requests at least.
func asked(u *scheduler.Unit) quota.Demand {
	if u.Elastic == nil {
		return u.Demand
	}
	return askedWith(u, podsOf(u))
}

// askedWith returns what an elastic unit requests with some of its pods.
func askedWith(u *scheduler.Unit, pods int32) quota.Demand {
	d := quota.Demand{Preemptible: u.Demand.Preemptible}
	for _, a := range u.Demand.Requests {
		for range u.Elastic.Count - pods {
			each, _ := u.Elastic.Pod.Get(a.ID)
			a.Value -= each
		}
		d.Requests = append(d.Requests, resources.Amount{ID: a.ID, Value: a.Value})
	}
	return d
}

// checkGrant verifies that a unit that is about to be admitted with fewer pods has enough of them and is charged for
// them.
func (w *world) checkGrant(write scheduler.Write) {
	w.t.Helper()
	u := w.units[write.Key]
	if u == nil || u.UID != write.UID || u.Version != write.Version || write.Kind != scheduler.Dequeue && write.Kind != scheduler.Reserve {
		return // the core does not know about a change yet, so the write fails
	}
	e := u.Elastic
	if e == nil || holds(u) {
		if want := int32(0); e != nil {
			if want = e.Granted; want != write.Grant.Count {
				w.t.Fatalf("unit %s was granted %d pods, and is released with %d", u.Key, want, write.Grant.Count)
			}
		} else if write.Grant.Count != 0 {
			w.t.Fatalf("unit %s is granted %+v of a fixed number of pods", u.Key, write.Grant)
		}
		return
	}
	n := write.Grant.Count
	if n == 0 {
		n = e.Count
	} else if write.Grant.PodSet != e.PodSet || n < e.Min || n >= e.Count {
		w.t.Fatalf("unit %s is granted %+v of %d to %d pods", u.Key, write.Grant, e.Min, e.Count)
	}
	charge := w.core.ChargeOf(write.Key)
	if charge == nil || !charge.Demand.Equal(askedWith(u, n)) {
		w.t.Fatalf("unit %s is granted %d pods, and charged %+v, not %+v", u.Key, n, charge, askedWith(u, n))
	}
}

// checkLargest verifies that no more pods of a unit that was admitted in this round would fit. Its write may come
// later, after another one that is in progress. A unit that was owed room must not borrow for more.
func (w *world) checkLargest(key string, g scheduler.Grown) {
	w.t.Helper()
	u, charge := w.units[key], w.core.ChargeOf(key)
	if _, version := w.core.VersionOf(key); u == nil || u.Version != version || charge == nil || u.Elastic == nil || holds(u) {
		return // the core does not know of a change yet
	}
	group, refusal := w.tree.Place(u.Namespace(), u.QuotaName)
	if refusal != nil {
		w.t.Fatalf("unit %s is admitted without a group", u.Key)
	}
	e, n := u.Elastic, g.Pods
	if w.unproven || n == e.Count || w.core.Claims() > 0 || len(w.core.Bookings()) > 0 { // it does not get what is planned for others
		return
	}
	without := w.oracleWithout(charge)
	if g.Reclaimed && w.borrows(without, group.Path(), askedWith(u, n+1)) {
		return
	}
	if reason := without.Refuses(group.Path(), askedWith(u, n+1)); reason == "" {
		w.t.Fatalf("unit %s is granted %d of %d to %d pods, and one more would fit", u.Key, n, e.Min, e.Count)
	}
}

// borrows reports whether a demand exceeds the guarantee of the group.
func (w *world) borrows(o *oracle.Tree, path string, d quota.Demand) bool {
	return slices.ContainsFunc(d.Requests, func(a resources.Amount) bool {
		name := w.names.Name(a.ID)
		due, named := o.Guarantee(path, name)
		if name == quota.JobsResource {
			return false
		}
		if !named {
			due = new(big.Int)
		}
		return new(big.Int).Add(o.Used(path, name), big.NewInt(a.Value)).Cmp(due) > 0
	})
}

// oracleWithout returns the tree in force with all charges of the core except what a unit was admitted with.
func (w *world) oracleWithout(admission *quota.Charge) *oracle.Tree {
	o := oracle.New(w.names, w.root, big.NewRat(1, 1))
	o.Reserving, o.Reserved = w.treeOpts.PauseBorrowing || w.treeOpts.Reclaim, w.reserved()
	w.core.EachCharge(func(path string, gone bool, c *quota.Charge) {
		charged := oracle.Charged{Path: path, Gone: gone, Charge: *c}
		if c == admission {
			charged.Demand.Requests = nil
		}
		o.Charged = append(o.Charged, charged)
	})
	return o
}

// drawElastic draws a unit that can start with fewer pods, or one that cannot.
func (w *world) drawElastic(t *rapid.T) func(*scheduler.Unit) {
	count := int32(rapid.IntRange(1, 6).Draw(t, "pods"))
	if count == 1 || rapid.Bool().Draw(t, "all pods must start") {
		return func(*scheduler.Unit) {}
	}
	return w.elastic(int32(rapid.IntRange(1, int(count)).Draw(t, "least pods")), count)
}
