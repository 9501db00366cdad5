package scheduler_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/oracle"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// failer is what testing.TB and rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is an in-memory API server as the core sees it: it keeps the units, refuses writes based on an old version, and
// lets the test decide when writes land, when their outcomes arrive and when informers report a change.
type world struct {
	t     failer
	now   time.Time
	names *resources.Names
	core  *scheduler.Scheduler
	tree  *tree.Tree
	root  tree.Node
	opts  scheduler.Options
	// treeOpts are the options of trees planted from now on. set has the settings of administrators by queue.
	treeOpts tree.Options
	set      map[string]scheduler.QueueChanged
	// without is whether there is currently no quota.
	without bool
	// checks are the timeouts of the admission checks that exist.
	checks map[string]time.Duration
	// off are the kinds that are not queued.
	off map[scheduler.JobKind]*quota.Refusal

	version uint64
	units   map[string]*scheduler.Unit
	pods    map[string]pods.Pod
	// left are the deleted units, by UID, whose pods the core still charges.
	left map[string]leftover
	// shown is where each unit was charged, by UID, as last reported by the informer or at the start of a process.
	shown map[string]leftover
	// listed is whether the core has received Listed. forged has the UIDs of units that another process has since written
	// to hold quota, and whether that must be taken back.
	listed bool
	forged map[string]bool
	// restored has the attempts of the jobs whose lost units were replaced, by UID of the new unit.
	restored map[string]int32
	// lasting omits pods that are being deleted from all sums.
	lasting bool
	// news are versions of units that the informer has not delivered. A nil unit is gone.
	news []news
	// sent are writes that have not landed. outcomes are those that have not been delivered.
	sent     []scheduler.Write
	outcomes []scheduler.Event
	wake     time.Time

	// denied are the units, by UID, that must not be written to, with the denied version and until when.
	denied map[string]refusal
	// landed are the writes that changed something, in order.
	landed []scheduler.Write
	// exact is whether limits have not changed since the start, so that the API objects must never exceed them.
	exact bool
	// unproven skips the check after each event, which takes time proportional to the number of units.
	unproven bool
	// reclaims counts the evictions that checkReclaims has verified.
	reclaims int
	// sought counts the units at rest that lawfulVictims had candidates for.
	sought int
	// judgesBorrowing lets checkBorrowing verify each release. tempted counts the units that it keeps from one.
	judgesBorrowing bool
	tempted         int
	// booked reports that room was booked at some time.
	booked bool
	// forgets lets the core forget after each event what is no longer used.
	forgets bool
}

type refusal struct {
	version uint64
	until   time.Time
}

type news struct {
	key, uid string
	unit     *scheduler.Unit
}

func newWorld(t failer, opts scheduler.Options, root tree.Node) *world {
	w := &world{t: t, now: time.Unix(1_700_000_000, 0), names: resources.NewNames(), units: map[string]*scheduler.Unit{}, pods: map[string]pods.Pod{}, left: map[string]leftover{}, shown: map[string]leftover{}, denied: map[string]refusal{}, forged: map[string]bool{}, restored: map[string]int32{}, opts: opts, exact: true, set: map[string]scheduler.QueueChanged{}, checks: map[string]time.Duration{}}
	w.core = scheduler.New(opts)
	w.plant(root)
	return w
}

// plant puts a tree in force.
func (w *world) plant(root tree.Node) {
	w.t.Helper()
	w.root = root
	t := w.fresh()
	w.tree, w.without = t, false
	w.core.Apply(w.now, scheduler.QuotaChanged{Backend: t})
	w.check()
}

// fresh returns the tree without charges.
func (w *world) fresh() *tree.Tree {
	w.t.Helper()
	t, _, err := tree.New(w.names, w.root, w.treeOpts)
	if err != nil {
		w.t.Fatalf("the test's tree is invalid: %v", err)
	}
	return t
}

// charged returns the tree charged with everything that holds quota according to the API objects.
func (w *world) charged() *tree.Tree {
	w.t.Helper()
	t := w.fresh()
	w.chargePods(t)
	return t
}

// configure changes a queue, as an administrator does.
func (w *world) configure(e scheduler.QueueChanged) {
	w.set[e.Queue] = e
	w.core.Apply(w.now, e)
	w.check()
}

// queueOf returns the settings of the unit's queue.
func (w *world) queueOf(u *scheduler.Unit) scheduler.QueueChanged {
	if group, refusal := w.tree.Place(u.Namespace(), u.QuotaName); refusal == nil {
		return w.set[group.Queue()]
	}
	return scheduler.QueueChanged{}
}

// restart makes a core that knows only the API objects. Outcomes of writes in progress are lost, but the writes may
// still land.
func (w *world) restart() {
	w.core = scheduler.New(w.opts)
	w.news, w.outcomes = nil, nil
	w.core.Apply(w.now, scheduler.KindsChanged{Off: w.off})
	for _, name := range slices.Sorted(maps.Keys(w.set)) {
		w.core.Apply(w.now, w.set[name])
	}
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		w.core.Apply(w.now, scheduler.PodChanged{Pod: w.pods[uid]})
	}
	clear(w.left) // a new process never sees a unit that is gone
	for _, key := range slices.Sorted(maps.Keys(w.units)) {
		w.shown[w.units[key].UID] = placeOf(w.units[key])
		w.core.Apply(w.now, scheduler.UnitChanged{Unit: withoutUnusedJob(*w.units[key])})
	}
	for _, name := range slices.Sorted(maps.Keys(w.checks)) {
		w.core.Apply(w.now, scheduler.CheckChanged{Name: name, Timeout: w.checks[name]})
	}
	clear(w.denied)
	clear(w.forged) // what holds quota at the start is trusted
	if w.listed {
		w.list()
	}
	w.tree, w.without = w.fresh(), false
	w.core.Apply(w.now, scheduler.QuotaChanged{Backend: w.tree}) // last, like the controller
	w.check()
}

// list tells the core that it has seen all units.
func (w *world) list() {
	w.listed = true
	w.core.Apply(w.now, scheduler.Listed{})
}

// forge writes that a waiting unit holds quota, unless its admission is being written.
func (w *world) forge(key string, phase scheduler.Phase) {
	w.t.Helper()
	u := w.units[key]
	if u.Phase != scheduler.Waiting || w.underWay(u) {
		return
	}
	w.exact = false // it is not checked whether it fits
	w.forged[u.UID] = true
	w.write(key, func(u *scheduler.Unit) {
		u.Phase, u.Attempts, u.DequeuedAt, u.Restored = phase, u.Attempts+1, w.now, false
	})
}

// forgeRelease writes that the checks of a Reserved unit have passed, unless its admission is being written.
func (w *world) forgeRelease(key string) {
	w.t.Helper()
	u := w.units[key]
	if u.Phase != scheduler.Reserved || w.underWay(u) {
		return
	}
	w.deliverAll() // otherwise, the core may not learn that it was Reserved
	if u.Phase == scheduler.Reserved {
		w.forged[u.UID] = true
		w.write(key, func(u *scheduler.Unit) { u.Phase, u.Attempts, u.DequeuedAt = scheduler.Dequeued, u.Attempts+1, w.now })
	}
}

// trust accepts the phase of a unit, so that nothing is taken back.
func (w *world) trust(uid string) {
	if w.forged[uid] {
		w.forged[uid] = false
	}
}

// underWay reports whether a write of the unit is in progress.
func (w *world) underWay(u *scheduler.Unit) bool {
	return slices.ContainsFunc(w.sent, func(s scheduler.Write) bool { return s.UID == u.UID }) ||
		slices.ContainsFunc(w.outcomes, func(e scheduler.Event) bool {
			switch e := e.(type) {
			case scheduler.Written:
				return e.Write.Key == u.Key
			case scheduler.Refused:
				return e.Write.Key == u.Key
			}
			return false
		})
}

func (w *world) demand(list map[string]string) quota.Demand {
	w.t.Helper()
	requests, err := resources.Request(w.names, quantities(list))
	if err != nil {
		w.t.Fatalf("the test's request is invalid: %v", err)
	}
	return quota.Demand{Requests: requests.With(w.names.ID(quota.JobsResource), 1), Preemptible: true}
}

// write changes a unit as others than the core do.
func (w *world) write(key string, change func(*scheduler.Unit)) {
	w.version++
	u := w.units[key]
	if u == nil {
		uid := fmt.Sprint("uid-", w.version)
		u = &scheduler.Unit{Key: key, Facts: scheduler.Facts{UID: uid, Owner: jobOf(uid), Label: labelOf(uid), Submitted: w.now.UnixMicro()}}
		w.units[key] = u
	}
	change(u)
	u.Version = w.version
	w.publish(u)
}

func holds(u *scheduler.Unit) bool {
	return u.Phase == scheduler.Dequeued || u.Phase == scheduler.Running || u.Phase == scheduler.Reserved
}

// overran reports whether a unit has run for longer than allowed.
func (w *world) overran(u *scheduler.Unit) bool {
	return (u.Phase == scheduler.Dequeued || u.Phase == scheduler.Running) && u.MaxSeconds > 0 && !w.now.Before(u.DequeuedAt.Add(time.Duration(u.MaxSeconds)*time.Second))
}

// expired reports whether a hand-made unit has held quota for longer than allowed.
func (w *world) expired(u *scheduler.Unit) bool {
	r := u.Renewal
	if r == nil || u.Phase != scheduler.Dequeued && u.Phase != scheduler.Running {
		return false
	}
	last := u.DequeuedAt
	if r.At.After(last) && !r.At.After(w.now) {
		last = r.At
	}
	return !w.now.Before(last.Add(r.Timeout)) && !w.now.Before(r.NotBefore)
}

// renewed lets a unit hold quota for the timeout.
func renewed(timeout time.Duration, at time.Time) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) { u.Renewal = &scheduler.Renewal{Timeout: timeout, At: at} }
}

// restored makes a unit replace a lost one, whose job was released with the attempt after these.
func restored(attempts int32) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) { u.Restored, u.Attempts = true, attempts }
}

// publish lets the informer report the unit. Its cache does not keep the job of a unit that was never admitted.
func (w *world) publish(u *scheduler.Unit) {
	if u.Restored {
		w.restored[u.UID] = u.Attempts + 1
	}
	copied := withoutUnusedJob(*u)
	w.news = append(w.news, news{u.Key, u.UID, &copied})
}

func withoutUnusedJob(u scheduler.Unit) scheduler.Unit {
	if !had(&u) {
		u.Owner, u.Label = "", ""
	}
	return u
}

func (w *world) delete(key string) {
	u := w.units[key]
	place := placeOf(u)
	if _, was := w.forged[u.UID]; was || had(u) && w.shown[u.UID] != place { // otherwise, the core may never learn where its pods are charged
		w.deliverAll()
	}
	delete(w.units, key)
	if had(u) {
		w.left[u.UID] = place
	}
	w.news = append(w.news, news{key, u.UID, nil})
}

// submit creates a unit, as a user does.
func (w *world) submit(key string, list map[string]string, change ...func(*scheduler.Unit)) {
	d := w.demand(list)
	w.write(key, func(u *scheduler.Unit) {
		u.Demand = d
		for _, c := range change {
			c(u)
		}
	})
}

// deliver lets the informer report the oldest news.
func (w *world) deliver() {
	if len(w.news) == 0 {
		return
	}
	n := w.news[0]
	w.news = w.news[1:]
	if n.unit == nil {
		w.core.Apply(w.now, scheduler.UnitGone{Key: n.key, UID: n.uid})
	} else {
		w.shown[n.uid] = placeOf(n.unit)
		w.core.Apply(w.now, scheduler.UnitChanged{Unit: *n.unit})
	}
	w.check()
}

// deliverAll lets the informer report all news.
func (w *world) deliverAll() {
	for len(w.news) > 0 {
		w.deliver()
	}
}

// think lets the core decide.
func (w *world) think() {
	var before *oracle.Tree
	charged := map[string]bool{}
	if w.judgesBorrowing && len(w.news) == 0 {
		before = w.oracleWithout(nil)
		for key := range w.units {
			charged[key] = w.core.ChargeOf(key) != nil
		}
	}
	plan, wake := w.core.Next(w.now)
	if before != nil {
		w.checkBorrowing(before, charged, plan)
	}
	for key, grown := range w.core.Grown() {
		w.checkLargest(key, grown)
	}
	w.checkReclaims(plan)
	for _, write := range plan {
		if write.Kind == scheduler.Dequeue || write.Kind == scheduler.Reserve {
			w.trust(write.UID) // the core has decided the same, and has room for it
		}
		if d := w.denied[write.UID]; d.version == write.Version && w.now.Before(d.until) {
			w.t.Fatalf("%s is sent for unit %s, which may not be written to until %v", write.Kind, write.Key, d.until)
		}
		if u := w.units[write.Key]; write.Kind == scheduler.Expire && u != nil && u.Version == write.Version && !w.expired(u) {
			w.t.Fatalf("unit %s ends although it was renewed: %+v", u.Key, u)
		}
		w.checkWrite(write)
		w.checkVictim(write)
		w.checkFigures(write)
		w.checkGrant(write)
		for _, other := range w.sent {
			if other.Key == write.Key && other.UID == write.UID && other.Seq != 0 {
				w.t.Fatalf("two writes under way for unit %s", write.Key)
			}
		}
	}
	w.sent = append(w.sent, plan...)
	w.wake = wake
	w.booked = w.booked || len(w.core.Bookings()) > 0
	w.check()
}

// hearAndThink lets the core decide once it knows everything.
func (w *world) hearAndThink() {
	w.deliverAll()
	w.think()
}

// checkWrite verifies that a write that is about to be sent releases nothing in a stopped queue and drains only queues
// that must be drained.
func (w *world) checkWrite(write scheduler.Write) {
	if write.Kind == scheduler.Dequeue && write.Attempt == w.restored[write.UID] {
		return // its job is running
	}
	if u := w.units[write.Key]; write.Kind == scheduler.Dequeue && u != nil && w.off[u.Kind] != nil {
		w.t.Fatalf("unit %s is admitted although its kind is off", write.Key)
	}
	stop := w.set[write.Queue].Stop
	w.checkWriteOfChecks(write)
	w.checkWaitForPods(write)
	if (write.Kind == scheduler.Dequeue || write.Kind == scheduler.Reserve) && stop != scheduler.NotStopped {
		w.t.Fatalf("unit %s is released by stopped queue %s", write.Key, write.Queue)
	}
	if write.Kind == scheduler.Evict && write.Reason == wellknown.ReasonQueueStopped && stop != scheduler.Drain {
		w.t.Fatalf("unit %s is evicted from queue %s, which is not drained", write.Key, write.Queue)
	}
}

// used finds the node, the resource and the used amount in a sentence about what a unit lacks.
var used = regexp.MustCompile(`^(?:insufficient|borrowing of) (\S+) (?:is paused )?in quota (\S+?)(?: until .*)?: [^;]*?used (\S+?)(?: \(.*)?(?: and (?:reserved|kept) (\S+))? of max ([^\s;]+)`)

// checkFigures verifies that the figures that a unit is about to show match the current usage.
func (w *world) checkFigures(write scheduler.Write) {
	if w.unproven || write.Kind != scheduler.Explain || write.Reason != wellknown.ReasonQuotaExceeded && write.Reason != wellknown.ReasonBorrowingPaused {
		return
	}
	found := used.FindStringSubmatch(write.Message)
	if found == nil {
		if !strings.Contains(write.Message, "by non-preemptible jobs") && !strings.Contains(write.Message, "for non-preemptible jobs") {
			w.t.Fatalf("unit %s: no figures in %q", write.Key, write.Message)
		}
		return
	}
	for i, usage := range w.tree.Usage() {
		if usage.Path != found[2] {
			continue
		}
		id := w.names.ID(found[1])
		amount, _ := usage.Used.Get(id)
		limit, _ := usage.Max.Get(id)
		if strings.Contains(write.Message, " kept ") {
			return // how much is kept depends on the core's plan
		}
		reserved := ""
		if space := (quota.Space{Node: quota.NodeID(i), Resource: id}); write.Reason == wellknown.ReasonBorrowingPaused {
			room := w.tree.Room(space)
			space.Bound = quota.Lending
			reserved = resources.Format(found[1], room-w.tree.Room(space))
		}
		if found[3] != resources.Format(found[1], amount) || found[4] != reserved || found[5] != resources.Format(found[1], limit) {
			w.t.Fatalf("unit %s: %q, but used is %s, reserved %s and the limit %s", write.Key, write.Message,
				resources.Format(found[1], amount), reserved, resources.Format(found[1], limit))
		}
		return
	}
	w.t.Fatalf("unit %s: no quota is named in %q", write.Key, write.Message)
}

// land carries out a write that is in progress.
func (w *world) land(i int) {
	s := w.sent[i]
	w.sent = slices.Delete(w.sent, i, i+1)
	u := w.units[s.Key]
	switch {
	case u == nil:
		w.outcome(scheduler.Refused{Write: &s})
	case u.UID != s.UID || u.Version != s.Version: // the response may be ahead of the informer
		now := withoutUnusedJob(*u)
		w.outcome(scheduler.Refused{Write: &s, Now: &now})
	default:
		w.version++
		u.Version = w.version
		switch s.Kind {
		case scheduler.Dequeue, scheduler.Reserve, scheduler.Requeue, scheduler.Explain:
			u.Reason, u.Quota, u.Backoff = s.Reason, s.Quota, nil
			if s.Reason == wellknown.ReasonBackoff { // the cause is in the message while the unit has it
				u.Backoff = &quota.Refusal{Reason: s.Reason, Sentence: s.Message}
			}
		case scheduler.ShowPlace:
			if !holds(u) || u.Quota == s.Quota {
				w.t.Fatalf("unit %s shows quota %q again, in phase %d", u.Key, s.Quota, u.Phase)
			}
			u.Quota = s.Quota
		case scheduler.Evict:
			u.Reason = s.Reason
		}
		switch s.Kind {
		case scheduler.Dequeue:
			if u.Phase != scheduler.Waiting && u.Phase != scheduler.Reserved || u.Inactive && !u.Restored {
				w.t.Fatalf("unit %s is released in phase %d, inactive %t", u.Key, u.Phase, u.Inactive)
			}
			u.Phase, u.Attempts, u.DequeuedAt, u.Restored, u.Eviction = scheduler.Dequeued, s.Attempt, w.now, false, scheduler.Eviction{}
			granted(u, s.Grant.Count)
			u.Evicted, u.Stopped, u.OverQuota, u.AwaitsPods, u.Unscheduled = false, false, false, s.AwaitsPods, false
		case scheduler.Reserve:
			w.reserve(u, &s)
		case scheduler.Requeue:
			if !holds(u) || !u.Stopped && u.Phase != scheduler.Reserved && w.off[u.Kind] == nil {
				w.t.Fatalf("unit %s is requeued in phase %d, stopped %t", u.Key, u.Phase, u.Stopped)
			}
			w.forgetChecks(u, &s)
			u.Phase, u.Evicted, u.Stopped, u.OverQuota, u.Eviction = scheduler.Waiting, false, false, false, scheduler.Eviction{At: w.now}
			u.Unscheduled = false
			u.AwaitsPods = false
			granted(u, 0)
			u.Requeues, u.RequeueAt = s.Requeue.Count, s.Requeue.Until
			w.trust(u.UID)
		case scheduler.Evict:
			failedCheck := s.Reason == wellknown.ReasonAdmissionCheckRetry || s.Reason == wellknown.ReasonAdmissionCheckRejected
			forOther := isForOther(s)
			if !holds(u) || u.Evicted || u.Stopped || u.Over || !u.Inactive && !w.overran(u) && !w.isUnready(u, s.Reason) && !w.forged[u.UID] && s.Reason != wellknown.ReasonQueueStopped && !failedCheck && !forOther ||
				forOther != (s.EvictedFor != "") {
				w.t.Fatalf("unit %s is evicted for no reason (%s): %+v", u.Key, s.Reason, u)
			}
			u.Evicted, u.Eviction = true, scheduler.Eviction{At: w.now, For: s.EvictedFor}
		case scheduler.Expire:
			u.Phase, u.Reason, u.OverQuota, u.Unscheduled = scheduler.Ended, s.Reason, false, false
		case scheduler.MarkOverQuota:
			if !holds(u) || u.OverQuota {
				w.t.Fatalf("unit %s is marked over quota in phase %d, marked %t", u.Key, u.Phase, u.OverQuota)
			}
			u.OverQuota = true
		case scheduler.MarkUnscheduled, scheduler.ClearUnscheduled:
			if !holds(u) || s.Kind == scheduler.ClearUnscheduled && !u.Unscheduled {
				w.t.Fatalf("unit %s: %s in phase %d, marked %t", u.Key, s.Kind, u.Phase, u.Unscheduled)
			}
			u.Unscheduled = s.Kind == scheduler.MarkUnscheduled
		case scheduler.ClearOverQuota:
			if !u.OverQuota {
				w.t.Fatalf("unit %s is cleared without being marked", u.Key)
			}
			u.OverQuota = false
		}
		w.landed = append(w.landed, s)
		w.publish(u)
		w.outcome(scheduler.Written{Write: &s, Version: u.Version, At: w.now})
		w.checkLimits()
	}
}

// deny makes the API server deny a write in progress, and every other write to the unit. A phase that another process
// has written then does not count as the result of the write.
func (w *world) deny(i int) {
	s := w.sent[i]
	w.sent = slices.Delete(w.sent, i, i+1)
	until := w.now.Add(30 * time.Second)
	w.denied[s.UID] = refusal{s.Version, until}
	if u := w.units[s.Key]; u != nil && u.UID == s.UID && holds(u) && (s.Kind == scheduler.Dequeue || s.Kind == scheduler.Reserve) {
		if _, version := w.core.VersionOf(s.Key); version < u.Version {
			if _, was := w.forged[s.UID]; was {
				w.forged[s.UID] = true
			}
		}
	}
	w.core.Apply(w.now, scheduler.Denied{Write: &s, Until: until,
		Why: &quota.Refusal{Reason: wellknown.ReasonBackoff, Sentence: "a policy denies it"}})
	w.check()
}

func (w *world) outcome(e scheduler.Event) { w.outcomes = append(w.outcomes, e) }

// answer passes the outcome of a write to the core.
func (w *world) answer(i int) {
	e := w.outcomes[i]
	w.outcomes = slices.Delete(w.outcomes, i, i+1)
	w.core.Apply(w.now, e)
	w.check()
}

func (w *world) check() {
	w.t.Helper()
	if w.unproven {
		return
	}
	if err := w.core.Check(); err != nil {
		w.t.Fatalf("invariant: %v", err)
	}
	if n := w.core.Rescued(); n != 0 {
		w.t.Fatalf("the safety net found %d lost wake-ups", n)
	}
	if w.forgets {
		w.forget()
	}
}

// forget lets the core forget what is no longer used. The core must use what its known pods and units name. The world
// uses what the others name, because it keeps demands as the core reads them.
func (w *world) forget() {
	w.t.Helper()
	used, known := w.core.Uses()
	if !known {
		w.t.Fatalf("the core does not know what it uses")
	}
	expect := func(about string, v resources.Vector) {
		for _, a := range v {
			if !used.Has(a.ID) {
				w.t.Fatalf("the core would forget %s of %s", w.names.Name(a.ID), about)
			}
		}
	}
	for _, p := range w.pods {
		expect("pod "+p.UID, p.Requests)
	}
	for key, u := range w.units {
		if _, version := w.core.VersionOf(key); version == u.Version && u.Phase != scheduler.Ended {
			expect("unit "+key, u.Demand.Requests)
		}
	}
	for _, u := range w.units {
		used.AddVector(u.Demand.Requests)
	}
	for _, n := range w.news {
		if n.unit != nil {
			used.AddVector(n.unit.Demand.Requests)
		}
	}
	for _, e := range w.outcomes {
		if refused, is := e.(scheduler.Refused); is && refused.Now != nil {
			used.AddVector(refused.Now.Demand.Requests)
		}
	}
	w.core.Forget(used)
	w.names.Forget(used)
}

// checkLimits verifies with the API objects alone that no limit is exceeded.
func (w *world) checkLimits() {
	w.t.Helper()
	if !w.exact || w.unproven {
		return
	}
	charged := w.charged()
	for _, u := range w.units {
		if !holds(u) {
			continue
		}
		group, refusal := charged.Place(u.Namespace(), u.QuotaName)
		if refusal != nil {
			continue
		}
		for i, node := range group.Nodes() {
			for _, a := range u.Demand.Requests {
				room := charged.Room(quota.Space{Node: node, Resource: a.ID})
				// A min of max-jobs limits nothing.
				if !u.Demand.Preemptible && i == 0 && w.names.Name(a.ID) != quota.JobsResource {
					room = min(room, charged.Room(quota.Space{Node: node, Resource: a.ID, Bound: quota.FixedMin}))
				}
				if room < 0 {
					w.t.Fatalf("bound of %s at node %d exceeded by %d", w.names.Name(a.ID), node, -room)
				}
			}
		}
	}
}

// settle lets everything arrive until no write is in progress.
func (w *world) settle() {
	w.t.Helper()
	for round := 0; ; round++ {
		if round > 10_000 {
			w.t.Fatalf("the world does not come to rest")
		}
		w.deliverAll()
		w.think()
		if len(w.sent) == 0 && len(w.outcomes) == 0 && len(w.news) == 0 {
			return
		}
		for len(w.sent) > 0 {
			w.land(0)
		}
		for len(w.outcomes) > 0 {
			w.answer(0)
		}
	}
}

// enqueue submits a unit, and settles.
func (w *world) enqueue(key string, list map[string]string, change ...func(*scheduler.Unit)) {
	w.t.Helper()
	w.submit(key, list, change...)
	w.settle()
}

// change writes a unit, and settles.
func (w *world) change(key string, change func(*scheduler.Unit)) {
	w.t.Helper()
	w.write(key, change)
	w.settle()
}

// end finishes a unit, and settles.
func (w *world) end(key string) {
	w.t.Helper()
	w.finish(key)
	w.settle()
}

// after lets time pass and wakes the core whenever it asked for that.
func (w *world) after(d time.Duration) {
	end := w.now.Add(d)
	for {
		w.settle()
		if w.wake.IsZero() || w.wake.After(end) {
			w.now = end
			w.settle()
			return
		}
		if !w.wake.After(w.now) {
			w.t.Fatalf("the core wants to be called at %v, which is not after %v", w.wake, w.now)
		}
		w.now = w.wake
	}
}

// runs makes the pods of a released unit run.
func (w *world) runs(key string) {
	w.write(key, func(u *scheduler.Unit) { u.Phase = scheduler.Running })
}

func (w *world) finish(key string) {
	w.write(key, func(u *scheduler.Unit) { u.Phase = scheduler.Ended })
}

// released lists the units that hold quota, by key.
func (w *world) released() []string {
	var keys []string
	for key, u := range w.units {
		if u.Phase == scheduler.Dequeued || u.Phase == scheduler.Running {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (w *world) writes(key string, kind scheduler.Kind) []scheduler.Write {
	var found []scheduler.Write
	for _, s := range w.landed {
		if s.Key == key && s.Kind == kind {
			found = append(found, s)
		}
	}
	return found
}

// expectCount expects that a unit was written to n times for this purpose, and returns the writes.
func (w *world) expectCount(key string, kind scheduler.Kind, n int) []scheduler.Write {
	w.t.Helper()
	found := w.writes(key, kind)
	if len(found) != n {
		w.t.Fatalf("unit %s has %d writes %s, want %d: %+v", key, len(found), kind, n, found)
	}
	return found
}

// expectWrites also expects that the writes have these reasons, in this order.
func (w *world) expectWrites(key string, kind scheduler.Kind, reasons ...wellknown.Reason) []scheduler.Write {
	w.t.Helper()
	found := w.expectCount(key, kind, len(reasons))
	for i, write := range found {
		if write.Reason != reasons[i] {
			w.t.Fatalf("unit %s has writes %s %+v, want the reasons %q", key, kind, found, reasons)
		}
	}
	return found
}
