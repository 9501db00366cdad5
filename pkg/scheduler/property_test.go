package scheduler_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/oracle"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Random events in random order, with writes that land late, outcomes that arrive before or after the informer's news,
// restarts and changes of quota. At every instant, used is the sum of what is charged (design rule 3), and with
// constant limits the API objects alone never exceed a limit. Only units that must not run, or not that long, are
// evicted.
func TestPropertyChargedIsUsed(t *testing.T) {
	booked := 0
	for _, policy := range queue.Policies() {
		t.Run(policy.Name, func(t *testing.T) {
			used, room := judge(t, "used is what is charged"), judge(t, "nobody waits for whom room could be made")
			rapid.Check(t, func(t *rapid.T) {
				w := randomLife(t, policy)
				if w.booked {
					booked++
				}
				used.add(len(releases(w.landed)) > 0, w.allEvictions())
				room.add(w.sought > 0 || slices.ContainsFunc(w.landed, isForOther), w.allEvictions())
			})
		})
	}
	if t.Logf("in %d lives room was booked", booked); booked == 0 {
		t.Error("the test proves nothing of bookings")
	}
}

func randomLife(t *rapid.T, policy *queue.Policy) *world {
	changing := rapid.Bool().Draw(t, "quota changes")
	draw := drawTree
	switch rapid.IntRange(0, 2).Draw(t, "kind of tree") {
	case 1:
		draw = drawDeep
	case 2:
		draw = drawBorrowers
	}
	w := newWorld(t, scheduler.Options{Policy: policy, Explanations: rapid.IntRange(0, 2).Draw(t, "explanations at a time"),
		Requeues:     backoff.Policy{Free: 1, Initial: 5 * time.Second, Max: time.Minute, Quiet: 10 * time.Minute},
		CheckRetries: backoff.Policy{Initial: 5 * time.Second, Max: time.Minute, Quiet: 10 * time.Minute}}, draw(t))
	w.treeOpts.PauseBorrowing = rapid.Bool().Draw(t, "borrowing is paused")
	w.treeOpts.Reclaim = rapid.Bool().Draw(t, "quota is reclaimed")
	w.forgets = rapid.Bool().Draw(t, "what nothing uses is forgotten")
	w.plant(w.root)
	checked := rapid.Bool().Draw(t, "queues have admission checks")
	// Only some runs have bookings, because less can be verified about waiting units beside a booking.
	reserving := rapid.IntRange(0, 2).Draw(t, "room is booked") == 0
	drawReserveAfter := func(t *rapid.T) time.Duration {
		if !reserving {
			return 0
		}
		return time.Duration(max(rapid.IntRange(-30, 90).Draw(t, "reserves after"), 0)) * time.Second
	}
	if reserving {
		for _, group := range w.tree.Groups() {
			w.configure(scheduler.QueueChanged{Queue: group.Queue(), ReserveAfter: drawReserveAfter(t)})
		}
	}
	pick := func(label string) string {
		if len(w.units) == 0 {
			t.Skip("no unit")
		}
		return rapid.SampledFrom(slices.Sorted(maps.Keys(w.units))).Draw(t, label)
	}
	index := func(n int, label string) int {
		if n == 0 {
			t.Skip("nothing to " + label)
		}
		return rapid.IntRange(0, n-1).Draw(t, label)
	}
	actions := map[string]func(*rapid.T){
		"submit": func(t *rapid.T) {
			key := fmt.Sprintf("%s/u%02d", rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "nowhere"}).Draw(t, "namespace"), rapid.IntRange(0, 15).Draw(t, "name"))
			if w.units[key] == nil {
				limit := time.Duration(max(rapid.IntRange(-60, 120).Draw(t, "seconds it may run"), 0)) * time.Second
				w.submit(key, drawRequest(t), priority(int32(rapid.IntRange(0, 3).Draw(t, "priority"))), maxTime(limit),
					preemptible(rapid.IntRange(0, 3).Draw(t, "preemptible") > 0), unstoppable(rapid.IntRange(0, 5).Draw(t, "unstoppable") == 0),
					quotaName(rapid.SampledFrom(w.quotas()).Draw(t, "quota")), w.drawElastic(t))
			}
		},
		"submit many": func(t *rapid.T) { // some of them have to wait for room
			for range rapid.IntRange(2, 6).Draw(t, "units") {
				submitSmall(t, w, fmt.Sprintf("s%03d", w.version))
			}
			w.settle()
		},
		"replace": func(t *rapid.T) {
			key := pick("unit")
			w.delete(key)
			w.submit(key, drawRequest(t), w.drawElastic(t))
		},
		"replace before the informer sees it": func(t *rapid.T) {
			key := pick("unit")
			w.delete(key)
			w.news = w.news[:len(w.news)-1]
			w.submit(key, drawRequest(t))
		},
		"change request": func(t *rapid.T) {
			d := w.demand(drawRequest(t))
			w.write(pick("unit"), func(u *scheduler.Unit) {
				// A charged unit may grow beyond a limit. Only then is more used than allowed.
				if u.Phase == scheduler.Waiting {
					d.Preemptible = u.Demand.Preemptible
					u.Demand = d
					w.resized(u)
				}
			})
		},
		"lower request": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if !holds(u) {
					return
				}
				var lower resources.Vector
				for _, a := range u.Demand.Requests {
					least := int64(0)
					if a.ID == w.names.ID(quota.JobsResource) {
						least = a.Value
					}
					if value := rapid.Int64Range(least, a.Value).Draw(t, "amount"); value > 0 {
						lower = lower.With(a.ID, value)
					}
				}
				u.Demand.Requests = lower
				w.resized(u)
			})
		},
		"change how many pods must start": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Phase == scheduler.Waiting {
					u.Elastic = nil
					w.drawElastic(t)(u)
				}
			})
		},
		"change priority": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) { u.Priority = int32(rapid.IntRange(0, 3).Draw(t, "priority")) })
		},
		"configure": func(t *rapid.T) {
			w.configure(scheduler.QueueChanged{
				Queue:  rapid.SampledFrom(w.queues()).Draw(t, "queue"),
				Policy: rapid.SampledFrom(append(queue.Policies(), nil)).Draw(t, "policy"),
				Rank:   int32(rapid.IntRange(0, 2).Draw(t, "rank")),
				Checks: w.drawChecks(t, checked),
				PodsReady: scheduler.PodsReady{Timeout: time.Duration(max(rapid.IntRange(-60, 60).Draw(t, "pods ready timeout"), 0)) * time.Second,
					Blocks: rapid.Bool().Draw(t, "blocks until pods are ready")},
				MaxPriority:  scheduler.Cap{Set: rapid.Bool().Draw(t, "capped"), Value: 1},
				Stop:         rapid.SampledFrom([]scheduler.Stop{scheduler.NotStopped, scheduler.NotStopped, scheduler.Hold, scheduler.Drain}).Draw(t, "stop"),
				ReserveAfter: drawReserveAfter(t),
				Gates:        rapid.Bool().Draw(t, "gates"),
				Preemption: scheduler.Preemption{
					WithinQueue:  rapid.Bool().Draw(t, "within the queue"),
					MinRunTime:   scheduler.Period{Set: rapid.Bool().Draw(t, "protected"), Value: 20 * time.Second},
					MaxPerMinute: int32(rapid.IntRange(0, 2).Draw(t, "a minute")),
				},
			})
		},
		"hold or unhold": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Held == nil {
					u.Held = &quota.Refusal{Reason: wellknown.ReasonSuspendedByUser}
				} else {
					activate(u)
				}
			})
		},
		"activate or deactivate": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Inactive {
					activate(u)
				} else {
					deactivate(u)
				}
			})
		},
		"change label": func(t *rapid.T) {
			name := quotaName(rapid.SampledFrom(w.quotas()).Draw(t, "quota"))
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Phase == scheduler.Waiting { // a charged unit moves whether it fits or not
					name(u)
				}
			})
		},
		"send to backoff": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Phase == scheduler.Waiting {
					u.RequeueAt = w.now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds")) * time.Second)
				}
			})
		},
		"change time limit": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				limit := int32(rapid.IntRange(0, 120).Draw(t, "seconds"))
				if u.MaxSeconds > 0 && holds(u) && (limit == 0 || limit > u.MaxSeconds) { // the limits of others would count for more
					limit = u.MaxSeconds
				}
				u.MaxSeconds = limit
			})
		},
		"run": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Phase == scheduler.Dequeued {
					u.Phase = scheduler.Running
				}
			})
		},
		"have all pods ready": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) { u.AwaitsPods = false })
		},
		"end, and leave something behind": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Over = u.Phase == scheduler.Running; u.Over {
					u.Demand.Requests, u.Elastic = w.demand(nil).Requests, nil
				}
			})
		},
		"end": func(t *rapid.T) {
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Phase != scheduler.Waiting {
					u.Phase = scheduler.Ended
				}
			})
		},
		"stop": func(t *rapid.T) {
			w.write(pick("unit"), stop)
		},
		"stop what is evicted": func(t *rapid.T) {
			for _, key := range slices.Sorted(maps.Keys(w.units)) {
				if w.units[key].Evicted {
					w.write(key, stop)
				}
			}
		},
		"delete":  func(t *rapid.T) { w.delete(pick("unit")) },
		"deliver": func(t *rapid.T) { w.deliver() },
		"think":   func(t *rapid.T) { w.think() },
		"land":    func(t *rapid.T) { w.land(index(len(w.sent), "write")) },
		"deny":    func(t *rapid.T) { w.deny(index(len(w.sent), "write")) },
		"settle":  func(t *rapid.T) { w.settle() }, // so that runs get further than with single steps
		"answer":  func(t *rapid.T) { w.answer(index(len(w.outcomes), "outcome")) },
		"wait": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 60_000).Draw(t, "ms")) * time.Millisecond)
		},
		"restart": func(t *rapid.T) {
			if rapid.IntRange(0, 5).Draw(t, "dice") == 0 {
				// Writes of the old process land before the restart or never: a new process lists after it has the lease.
				w.sent = nil
				w.restart()
			}
		},
		"": func(t *rapid.T) { w.check() },
	}
	if checked {
		w.checkActions(actions, pick)
	}
	if rapid.Bool().Draw(t, "pods") {
		w.exact = false // pods are created without quota
		w.podActions(actions, pick)
	}
	if rapid.Bool().Draw(t, "units are lost") {
		w.exact = false // the jobs run
		actions["restore"] = func(t *rapid.T) {
			key := fmt.Sprintf("%s/r%02d", rapid.SampledFrom([]string{"a", "b", "c", "nowhere"}).Draw(t, "namespace"), rapid.IntRange(0, 5).Draw(t, "name"))
			if w.units[key] == nil {
				w.submit(key, drawRequest(t), quotaName(rapid.SampledFrom(w.quotas()).Draw(t, "quota")), w.drawElastic(t),
					restored(int32(rapid.IntRange(0, 2).Draw(t, "attempts"))))
			}
		}
	}
	if rapid.Bool().Draw(t, "units are created by hand") {
		actions["renew"] = func(t *rapid.T) {
			at := w.now.Add(time.Duration(rapid.IntRange(-60, 60).Draw(t, "seconds from now")) * time.Second)
			w.write(pick("unit"), renewed(time.Duration(rapid.IntRange(1, 90).Draw(t, "timeout"))*time.Second, at))
		}
	}
	if changing {
		actions["change quota"] = func(t *rapid.T) {
			w.exact = false
			w.plant(draw(t))
		}
		actions["be without quota"] = func(t *rapid.T) {
			w.exact, w.without = false, true
			w.core.Apply(w.now, scheduler.QuotaChanged{Missing: &quota.Refusal{Reason: wellknown.ReasonInvalidQuotaTree, Sentence: "none is valid"}})
			w.check()
			if rapid.Bool().Draw(t, "for a while") {
				w.after(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			}
			w.plant(draw(t))
		}
	}
	if rapid.Bool().Draw(t, "somebody forges phases") {
		w.list()
		actions["forge"] = func(t *rapid.T) {
			w.forge(pick("unit"), rapid.SampledFrom([]scheduler.Phase{scheduler.Reserved, scheduler.Dequeued, scheduler.Running}).Draw(t, "phase"))
		}
		actions["forge an eviction"] = func(t *rapid.T) { // a late write of the previous leader
			other := w.units[pick("for whom")].UID
			w.write(pick("unit"), func(u *scheduler.Unit) {
				if u.Evicted = holds(u) && rapid.IntRange(0, 3).Draw(t, "taken back") > 0; !u.Evicted {
					u.Eviction = scheduler.Eviction{}
					return
				}
				u.Eviction = scheduler.Eviction{At: w.now, For: rapid.SampledFrom([]string{"", "of-nobody", other, other, other}).Draw(t, "for")}
			})
		}
	}
	if checked && w.listed {
		actions["forge the end of checks"] = func(*rapid.T) { w.forgeRelease(pick("unit")) }
	}
	t.Repeat(actions)
	w.after(2 * time.Second)
	before := w.core.Outdated(w.now)
	w.after(2 * scheduler.CorrectionDelay) // some causes may have changed just before the end
	for _, outdated := range w.core.Outdated(w.now) {
		if slices.Contains(before, outdated) && !w.without {
			t.Fatalf("for %v %s", 2*scheduler.CorrectionDelay, outdated)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.checks)) {
		w.addCheck(name, 0) // a unit that keeps being tried does not come to rest
	}
	w.rest()
	expectRest(t, w)
	expectNoRoomToMake(t, w)
	expectReasons(t, w)
	expectOverQuota(t, w)
	expectForgotten(t, w)
	return w
}

// expectForgotten verifies that nothing is left of units and pods that are gone, not even a name.
func expectForgotten(t *rapid.T, w *world) {
	for _, key := range slices.Sorted(maps.Keys(w.units)) {
		w.delete(key)
	}
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		w.podGone(uid)
	}
	for _, name := range slices.Sorted(maps.Keys(w.set)) {
		w.configure(scheduler.QueueChanged{Queue: name})
	}
	for _, name := range slices.Sorted(maps.Keys(w.checks)) {
		w.removeCheck(name)
	}
	w.after(2 * time.Minute)
	w.forget()
	fresh := newWorld(w.t, w.opts, w.root)
	fresh.forget()
	if names := w.names.Len(); names != fresh.names.Len() {
		t.Fatalf("%d names are left, want the %d of the tree", names, fresh.names.Len())
	}
	if left, want := w.core.Stored(), fresh.core.Stored(); left != want {
		t.Fatalf("what is left is %+v, want %+v", left, want)
	}
}

// expectReasons verifies that in a world at rest every waiting unit shows exactly why it waits.
func expectReasons(t *rapid.T, w *world) {
	o := w.oracle()
	for _, key := range slices.Sorted(maps.Keys(w.units)) {
		u := w.units[key]
		if u.Phase != scheduler.Waiting {
			continue
		}
		want := w.reasonOf(o, u)
		if lacksRoom(u.Reason) && (lacksRoom(want) || want == wellknown.ReasonWaitingForPods || want == "" && w.waitsForOthers(o, u)) {
			continue // what it lacked when it was tried; it may lack more by now
		}
		if u.Reason == wellknown.ReasonNotAtFront && want == wellknown.ReasonWaitingForPods && w.policyOf(w.queueOf(u)).FrontOnly && w.front(o, w.groupOf(u)) != u {
			continue // it is still true
		}
		if u.Reason != want {
			t.Fatalf("unit %s shows %s, and waits for %s", key, u.Reason, want)
		}
	}
}

func lacksRoom(r wellknown.Reason) bool {
	return r == wellknown.ReasonPreempting || r == wellknown.ReasonQuotaExceeded || r == wellknown.ReasonMaxJobs || r == wellknown.ReasonBorrowingPaused
}

// queues and quotas that exist, and some that do not.
func (w *world) queues() []string {
	names := []string{"of-no-group"}
	for _, group := range w.tree.Groups() {
		names = append(names, group.Queue())
	}
	return names
}

func (w *world) quotas() []string {
	names := []string{"", "", "", "", "", "of-no-group"}
	for _, group := range w.tree.Groups() {
		names = append(names, group.Path())
	}
	return names
}

func (w *world) reasonOf(o *oracle.Tree, u *scheduler.Unit) wellknown.Reason {
	group, refusal := w.tree.Place(u.Namespace(), u.QuotaName)
	switch {
	case u.Held != nil:
		return u.Held.Reason
	case refusal != nil:
		return refusal.Reason
	case w.queueOf(u).Stop != scheduler.NotStopped:
		return wellknown.ReasonQueueStopped
	case w.missingCheck(u) != "":
		return wellknown.ReasonAdmissionCheckMissing
	}
	reason := o.Refuses(group.Path(), asked(u))
	if (reason == "" || !isFinal(reason)) && w.awaitsPodsOfOthers(u) {
		return wellknown.ReasonWaitingForPods
	}
	if reason != "" && isFinal(reason) || !w.policyOf(w.queueOf(u)).FrontOnly || w.front(o, group) == u {
		return reason
	}
	return wellknown.ReasonNotAtFront
}

// isFinal reports whether the end of other jobs cannot help.
func isFinal(r wellknown.Reason) bool { return (&quota.Refusal{Reason: r}).Final() }

// expectRest verifies that in a world at rest no unit waits that could run, every waiting unit says why, room is
// reserved only for units that wait for what they are owed, and the charges of the core match the API objects.
func expectRest(t *rapid.T, w *world) {
	charged := w.charged()
	for i, usage := range charged.Usage() {
		if got := w.tree.Usage()[i]; got.Jobs != usage.Jobs || !got.Used.Equal(usage.Used) {
			t.Fatalf("node %s: the core has %v used, the objects say %v", usage.Path, got, usage)
		}
	}
	o := w.oracle()
	justified := map[oracle.Place]map[string]int64{}
	for _, key := range slices.Sorted(maps.Keys(w.units)) {
		u := w.units[key]
		set := w.queueOf(u)
		if holds(u) && (u.Stopped && len(w.chargeOf(u).Pods) == 0 || !u.Stopped && !u.Evicted && !u.Over && (u.Inactive || w.overran(u) || w.forged[u.UID] || set.Stop == scheduler.Drain)) {
			t.Fatalf("unit %s holds quota and must not: %+v", key, u)
		}
		if w.expired(u) {
			t.Fatalf("unit %s holds quota and nobody has renewed it: %+v", key, u)
		}
		w.expectChecksFollowed(t, u)
		if u.Phase != scheduler.Waiting {
			continue
		}
		if u.Reason == "" {
			t.Fatalf("unit %s waits and does not say why", key)
		}
		group, refusal := w.tree.Place(u.Namespace(), u.QuotaName)
		if u.Held != nil || refusal != nil || set.Stop != scheduler.NotStopped || w.missingCheck(u) != "" {
			continue
		}
		if w.awaitsPodsOfOthers(u) { // it is not tried, so it keeps its earlier reservations
			w.justify(justified, u, group)
			continue
		}
		if !w.policyOf(set).FrontOnly || w.front(o, group) == u {
			expectRefused(t, w, o, u, group, justified)
		}
	}
	expectReservationsJustified(t, w, o, justified)
	for key := range w.core.Bookings() {
		if u := w.units[key]; u == nil || u.Phase != scheduler.Waiting || w.queueOf(u).ReserveAfter == 0 || w.now.Sub(time.UnixMicro(u.Submitted)) < w.queueOf(u).ReserveAfter {
			t.Fatalf("room is booked for %s, which does not wait for it: %+v", key, u)
		}
	}
}

// mayBeDelayed reports whether a unit that fits may have to wait because it may delay a unit with a booking.
func (w *world) mayBeDelayed(o *oracle.Tree, u *scheduler.Unit) bool {
	group, set := w.groupOf(u), w.queueOf(u)
	for key, start := range w.core.Bookings() {
		booked := w.units[key]
		other := w.groupOf(booked)
		isSame, end := other.Queue() == group.Queue(), w.now.Add(time.Duration(u.MaxSeconds)*time.Second)
		switch {
		case booked == u, isSame && set.MaxPriority.Of(u.Priority) > set.MaxPriority.Of(booked.Priority),
			!isSame && o.Within(oracle.Branch{Path: group.Path()}, asked(u)),
			u.MaxSeconds > 0 && len(w.checksOf(u)) == 0 && !end.After(start):
		case w.compete(o, u, booked):
			return true
		}
	}
	return false
}

// waitsForOthers reports whether a unit that fits may have to wait for a unit with a booking or a claim.
func (w *world) waitsForOthers(o *oracle.Tree, u *scheduler.Unit) bool {
	return w.mayBeDelayed(o, u) || w.withKept(o).Refuses(w.pathOf(u), asked(u)) != ""
}

// withKept returns the oracle with what is kept for claimants that wait for pods of others.
func (w *world) withKept(o *oracle.Tree) *oracle.Tree {
	kept := *o
	kept.Charged = slices.Clone(o.Charged)
	for _, u := range w.units {
		if waits(u) && u.Reason == wellknown.ReasonPreempting && w.awaitsPodsOfOthers(u) {
			kept.Charged = append(kept.Charged, oracle.Charged{Path: w.pathOf(u), Charge: quota.Charge{Demand: u.Demand}})
		}
	}
	return &kept
}

// compete reports whether two units request the same resource and a quota above both limits or guarantees it.
func (w *world) compete(o *oracle.Tree, a, b *scheduler.Unit) bool {
	others := oracle.Chain(w.pathOf(b))
	for _, path := range oracle.Chain(w.pathOf(a)) {
		for _, amount := range asked(a).Requests {
			requested, _ := asked(b).Requests.Get(amount.ID)
			_, limited := o.Limit(path, w.names.Name(amount.ID))
			_, guaranteed := o.Guarantee(path, w.names.Name(amount.ID))
			if slices.Contains(others, path) && amount.Value > 0 && requested > 0 && (limited || guaranteed) {
				return true
			}
		}
	}
	return false
}

// expectRefused verifies that a unit that can be tried has no room, and that what it lacks of what it is owed is
// reserved. It adds to justified what can be reserved for it.
func expectRefused(t *rapid.T, w *world, o *oracle.Tree, u *scheduler.Unit, group quota.Group, justified map[oracle.Place]map[string]int64) {
	reason := o.Refuses(group.Path(), asked(u))
	if reason == "" {
		if !w.waitsForOthers(o, u) {
			t.Fatalf("unit %s fits and waits", u.Key)
		}
		return
	}
	if !o.Reserving || isFinal(reason) {
		return
	}
	claims := o.Claims(group.Path(), asked(u))
	if claims == nil {
		return
	}
	w.justify(justified, u, group)
	for _, path := range oracle.Chain(group.Path()) {
		for _, a := range asked(u).Requests {
			place := oracle.Place{Path: path, Resource: w.names.Name(a.ID)}
			if slices.Contains(claims, place) && u.Reason != wellknown.ReasonPreempting && reason != wellknown.ReasonBorrowingPaused && o.Reserved[place] < a.Value && !w.lacksFixed(o, group, u) {
				t.Fatalf("unit %s is owed %s that others have borrowed, and of that only %d is reserved at %s", u.Key, place.Resource, o.Reserved[place], path)
			}
		}
	}
}

// justify adds to justified the room that can be reserved for a unit.
func (w *world) justify(justified map[oracle.Place]map[string]int64, u *scheduler.Unit, group quota.Group) {
	for _, path := range oracle.Chain(group.Path()) {
		for _, a := range asked(u).Requests {
			place := oracle.Place{Path: path, Resource: w.names.Name(a.ID)}
			if justified[place] == nil {
				justified[place] = map[string]int64{}
			}
			justified[place][group.Path()] = max(justified[place][group.Path()], a.Value)
		}
	}
}

// lacksFixed reports whether usage by non-preemptible units refuses a unit.
func (w *world) lacksFixed(o *oracle.Tree, group quota.Group, u *scheduler.Unit) bool {
	return !u.Demand.Preemptible && o.LacksFixed(group.Path(), asked(u))
}

// expectReservationsJustified verifies that no group reserves more than for one unit that waits for what it is owed
// while others borrow it.
func expectReservationsJustified(t *rapid.T, w *world, o *oracle.Tree, justified map[oracle.Place]map[string]int64) {
	for place, reserved := range o.Reserved {
		most := int64(0)
		for _, amount := range justified[place] {
			most += amount
		}
		if reserved < 0 || reserved > most {
			t.Fatalf("%d of %s is reserved at %s, but at most %d is owed to units that wait for borrowers", reserved, place.Resource, place.Path, most)
		}
	}
}

func (w *world) policyOf(set scheduler.QueueChanged) *queue.Policy {
	if set.Policy != nil {
		return set.Policy
	}
	return w.opts.Policy
}

// front returns the first possible unit of the group's queue.
func (w *world) front(o *oracle.Tree, group quota.Group) *scheduler.Unit {
	var front *scheduler.Unit
	for _, u := range w.units {
		g, refusal := w.tree.Place(u.Namespace(), u.QuotaName)
		if u.Phase != scheduler.Waiting || u.Held != nil || refusal != nil || w.missingCheck(u) != "" || g.Queue() != group.Queue() {
			continue
		}
		if reason := o.Refuses(g.Path(), asked(u)); reason != "" && isFinal(reason) {
			continue
		}
		if front == nil || w.before(u, front) {
			front = u
		}
	}
	return front
}

// before reports the order of a queue.
func (w *world) before(a, b *scheduler.Unit) bool {
	priorityCap := w.queueOf(a).MaxPriority
	if p, q := priorityCap.Of(a.Priority), priorityCap.Of(b.Priority); p != q {
		return p > q
	}
	return orderOf(w.policyOf(w.queueOf(a)), a, b) < 0
}

// orderOf compares two units with the same priority.
func orderOf(policy *queue.Policy, a, b *scheduler.Unit) int {
	byLength := 0
	if policy == queue.ShortestFirst {
		byLength = cmp.Compare(lengthOf(a), lengthOf(b))
	}
	return cmp.Or(byLength, cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.Key, b.Key))
}

// lengthOf returns the class of the limit of a unit. Nothing else is known: units in these tests declare no expected
// time, and too few units of a queue end to learn from.
func lengthOf(u *scheduler.Unit) queue.Length {
	return queue.LengthOf(cmp.Or(u.MaxSeconds, queue.UnknownSeconds))
}

func drawTree(t *rapid.T) tree.Node {
	amounts := func(label string, most int) map[string]string {
		list := map[string]string{}
		for _, name := range []string{"cpu", "memory", "rare-0", quota.JobsResource} {
			if rapid.IntRange(0, 3).Draw(t, label+" names "+name) > 0 {
				list[name] = fmt.Sprint(rapid.IntRange(0, most).Draw(t, label+" "+name))
			}
		}
		return list
	}
	group := func(name string, most int, namespaces ...string) tree.Node {
		n := leaf(name, amounts(name+" max", most), namespaces...)
		n.Min = quantities(amounts(name+" min", 4))
		for resource, q := range n.Min {
			if limit, named := n.Max[resource]; named && q.Cmp(limit) > 0 {
				n.Min[resource] = limit
			}
		}
		return n
	}
	inner := leaf("inner", amounts("inner", 12))
	inner.Children = []tree.Node{group("a", 10, "a"), group("b", 10, "b"), group("a2", 10, "a", "d")}
	if rapid.Bool().Draw(t, "inner is a group") {
		inner.Namespaces = []string{"e"}
	}
	root := leaf("root", amounts("root", 16))
	root.Children = []tree.Node{inner, group("c", 10, "c")}
	if _, _, err := tree.New(resources.NewNames(), root, tree.Options{}); err != nil { // the guarantees exceed the capacity
		for _, children := range [][]tree.Node{root.Children, inner.Children} {
			for i := range children {
				children[i].Min = nil
			}
		}
	}
	return root
}

func drawRequest(t *rapid.T) map[string]string {
	list := map[string]string{}
	for _, name := range []string{"cpu", "memory", "gpu"} {
		if rapid.Bool().Draw(t, "asks "+name) {
			list[name] = fmt.Sprint(rapid.IntRange(1, 6).Draw(t, name))
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "asks something rare") == 0 {
		list[fmt.Sprint("rare-", rapid.IntRange(0, 9).Draw(t, "rare"))] = fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "of it"))
	}
	return list
}
