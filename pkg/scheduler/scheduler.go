package scheduler

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// Options of a Scheduler.
type Options struct {
	// Policy applies to queues without one in QueueChanged; RoundRobin if nil.
	Policy *queue.Policy
	// Backoff is the backoff of policy RoundRobin. If zero, the default applies.
	Backoff queue.Backoff
	// Requeues is the backoff of units whose owners repeatedly stop their jobs. If zero, they do not wait.
	Requeues backoff.Policy
	// CheckRetries is the backoff of units whose admission checks fail for now or whose pods are not ready in time. If
	// zero, they do not wait.
	CheckRetries backoff.Policy
	// MinRunTime applies to queues without one in QueueChanged.
	MinRunTime time.Duration
	// EvictionTimeout is how long a unit that is evicted for another can take to stop before others are evicted instead.
	// If zero, DefaultEvictionTimeout applies.
	EvictionTimeout time.Duration
	// FlushInterval is how often everything that waits is tried again, in case a wake-up was lost. If zero, the
	// constant FlushInterval applies.
	FlushInterval time.Duration
	// Explanations limits how many explanations of why units wait can be in progress at a time; 0 means no limit. If set,
	// at most one explanation per ExplainInterval is sent while other writes are in progress, because explanations come in
	// bursts and must not delay admissions.
	Explanations int
	// Silent is whether units show no reasons why they wait, and the core is not called for them.
	Silent bool
}

// Scheduler is the core. The package comment describes it.
type Scheduler struct {
	defaultPolicy *queue.Policy
	backoff       queue.Backoff
	requeues      backoff.Policy
	checkRetries  backoff.Policy
	// checks are the timeouts of the existing admission checks, by name.
	checks map[string]time.Duration
	// off explains, by kind of job, why units of that kind are not admitted.
	off map[JobKind]*quota.Refusal
	// settings are the settings of queues that have any, by name. The queue might not exist.
	settings map[string]QueueChanged

	units map[string]*unit
	// pods attributes pods to holders. strays are the charges for pods without a unit, by namespace.
	pods    *pods.Ledger
	holders map[pods.Holder]*holder
	strays  map[string]*charge
	meters  meters
	// spaces and rooms are reused by exchange.
	spaces []quota.Space
	rooms  []int64

	backend quota.Backend
	missing *quota.Refusal
	// ledger holds the reservations; nil if the backend has none.
	ledger *ledger
	// limits is the backend if pods can exceed its limits; nil otherwise.
	limits quota.Exceedable
	// planner is the backend if it can plan evictions; nil otherwise.
	planner quota.Planner
	claims
	// bookings are the bookings of all queues, oldest first. booking is the number of queues that can have one.
	bookings []*booking
	booking  int
	// delay is the last refusal caused by a booking, and delayed are the shapes that such refusals keep waiting.
	delay   *quota.Refusal
	delayed map[*queue.Shape]bool
	queues  map[string]*queueState
	// queueAt finds a queue by the own node of its group.
	queueAt    map[quota.NodeID]*queueState
	waitIndex  *queue.WaitIndex
	tournament *tournament
	// order lists the queues in the order of the groups of the backend.
	order []*queueState
	// learned lists the units whose order has changed.
	learned []lesson
	// frontsToCheck are the queues that only try their front and whose front may have changed.
	frontsToCheck []*queueState
	// freed are the spaces that may have gained room since they were last processed, in the order they were freed.
	freed   []quota.Space
	isFreed map[quota.Space]bool
	// unproven are the queues whose tried item is not known to fit.
	unproven []*queueState
	// growing are the elastic units that were admitted in this round. newest is the last one until growNewest handles it;
	// zero otherwise.
	growing []growing
	newest  growing

	// listed is whether the core has seen all units that exist at the start.
	listed bool

	outbox    outbox
	explainer explainer
	timers    timers
	over      overQuota
	// unscheduled watches units whose pods are missing or cannot be scheduled.
	unscheduled unscheduled

	flushInterval    time.Duration
	flushAt          instant
	flushes, rescued int
}

// New returns a core without units and without quota.
func New(opts Options) *Scheduler {
	if opts.Policy == nil {
		opts.Policy = queue.Policies()[0]
	}
	if opts.Backoff == (queue.Backoff{}) {
		opts.Backoff = queue.DefaultBackoff()
	}
	s := &Scheduler{
		defaultPolicy: opts.Policy,
		backoff:       opts.Backoff,
		requeues:      opts.Requeues,
		checkRetries:  opts.CheckRetries,
		checks:        map[string]time.Duration{},
		flushInterval: cmp.Or(opts.FlushInterval, FlushInterval),
		outbox:        outbox{mostExplaining: opts.Explanations, denied: map[*unit]instant{}},
		settings:      map[string]QueueChanged{},
		units:         map[string]*unit{},
		pods:          pods.New(),
		holders:       map[pods.Holder]*holder{},
		strays:        map[string]*charge{},
		meters:        newMeters(),
		queues:        map[string]*queueState{},
		timers:        newTimers(),
		claims:        newClaims(opts),
		explainer:     newExplainer(opts.Silent),
		over:          newOverQuota(),
		unscheduled:   newUnscheduled(),
		isFreed:       map[quota.Space]bool{},
		delayed:       map[*queue.Shape]bool{},
		missing:       &quota.Refusal{Reason: wellknown.ReasonNoQuota, Sentence: "kube-queue-controller has not read the quota yet; if this persists, check its log"},
	}
	s.waitIndex = queue.NewWaitIndex(s.room, s.backoff)
	return s
}

// Apply processes an event. now is the current time, which never goes back.
func (s *Scheduler) Apply(now time.Time, e Event) {
	s.meters.now = now // not a call, so that Apply is inlined and events stay on the stack
	e.apply(s, now)
}

func (e UnitChanged) apply(s *Scheduler, now time.Time) {
	u := s.units[e.Unit.Key]
	if u != nil && u.UID != e.Unit.UID {
		if e.Unit.Version < u.Version {
			return // it is about a deleted unit of the same name
		}
		s.forget(u, now)
		u = nil
	}
	if u == nil {
		u = newUnit(&e.Unit)
		u.unadmitted = s.listed && u.Phase.holdsQuota()
		s.explainer.restore(u, e.Unit.Reason)
		if e.Unit.Reason == wellknown.ReasonPreempting {
			s.claimants = append(s.claimants, u.key())
		}
		if at := instantOf(e.Unit.Eviction.At); !e.Unit.Evicted && at.plus(time.Minute) > instantOf(now) {
			s.endedBefore = append(s.endedBefore, ended{u, at})
		}
		s.units[e.Unit.Key] = u
		s.settle(u, now)
		return
	}
	// The response to a write tells the core the version of the unit, but not its job.
	learnsJob := u.Owner == "" && e.Unit.Owner != "" && e.Unit.Version == u.Version
	if e.Unit.Version <= u.Version && !learnsJob {
		return
	}
	s.update(u, &e.Unit, u.write.sent)
	s.settle(u, now)
}

// update applies a newer version of the unit. sent is the kind of the write in progress, which may have caused the
// version.
func (s *Scheduler) update(u *unit, seen *Unit, sent Kind) {
	switch {
	case !seen.Phase.holdsQuota():
		u.unadmitted = false
	case !u.Phase.holdsQuota():
		u.unadmitted = s.listed && !sent.admits()
	case u.Phase == Reserved && seen.Phase != Reserved && !seen.Over && s.listed && sent != Dequeue:
		u.unadmitted = true // it did not wait for its checks
	}
	s.endDenial(u, math.MaxInt64) // the API server may accept its writes now
	if seen.Phase != Dequeued && seen.Phase != Running || seen.Evicted || seen.Stopped || seen.Over {
		s.learn(u, seen.Phase == Ended || seen.Over, s.meters.now)
	}
	isEasier, limit, end, isRaised := u.isEasierToEvictAs(seen), u.MaxSeconds, u.endsAt(), u.isRaisedBy(seen)
	u.update(seen)
	if isRaised {
		s.learnRaise(u)
	}
	switch shape := u.item.Shape(); {
	case u.MaxSeconds == limit && u.endsAt() == end:
	case shape != nil: // a booking may no longer bind it
		s.tryFirst(u.queue, shape)
		s.activate(u.queue)
	default:
		s.changes++ // what it holds ends at another time, which bookings depend on
	}
	if seen.HeldReported && seen.Held != nil { // the other writer has replaced what the unit showed
		s.explainer.restore(u, seen.Reason)
	}
	if isEasier {
		s.moreToEvict(u.countedIn)
	}
}

func (Listed) apply(s *Scheduler, _ time.Time) { s.listed = true }

// Knows reports whether a unit with the key is known.
func (s *Scheduler) Knows(key string) bool { return s.units[key] != nil }

func (e UnitGone) apply(s *Scheduler, now time.Time) {
	if u := s.units[e.Key]; u != nil && u.UID == e.UID {
		s.forget(u, now)
	}
}

func (s *Scheduler) forget(u *unit, now time.Time) {
	s.learn(u, false, now)
	u.gone, u.assumed = true, false
	s.outbox.discard(u)
	s.leave(u)
	s.recharge(u.namespace(), &u.charged, nil)
	s.unhold(u)
	s.chargePods(now)
	s.awaitPods(u, nil, now)
	s.count(u, nil, Ended)
	s.stopFollowing(u)
	s.timers.set(u, 0)
	delete(s.timers.checks, u)
	delete(s.outbox.denied, u)
	delete(s.over.shown, u)
	delete(s.explainer.history, u)
	s.unscheduled.forget(u)
	s.over.touch()
	delete(s.units, u.key())
}

func (e Written) apply(s *Scheduler, now time.Time) {
	w := e.Write
	u := s.units[w.Key]
	kind, underWay := s.outbox.answered(u, w.Seq)
	if !underWay {
		return
	}
	if kind.admits() { // from now on its phase decides whether it is charged, and it can be evicted for others
		u.assumed = false
		s.moreToEvict(u.countedIn)
	}
	if known := s.unscheduled.units[u]; known != nil && kind == MarkUnscheduled {
		known.message, known.at = w.Message, instantOf(now)
	}
	if e.Version > u.Version {
		u.Version = e.Version
		if kind.writesPlace() {
			u.Quota = w.Quota
		}
		switch kind {
		case Dequeue:
			u.Phase, u.unadmitted = Dequeued, false
			u.dequeuedAt, u.Evicted, u.Stopped, u.Unscheduled = instantOf(e.At), false, false, false
			u.AwaitsPods, u.Restored = w.AwaitsPods, false
			u.Attempts++
		case Reserve:
			u.Phase, u.unadmitted, u.Evicted, u.Stopped = Reserved, false, false, false
			u.reserved(w, e.At)
		case Requeue:
			u.Phase, u.unadmitted, u.Evicted, u.Stopped, u.OverQuota, u.Unscheduled = Waiting, false, false, false, false, false
			u.AwaitsPods = false
			u.Requeues, u.requeueAt = w.Requeue.Count, instantOf(w.Requeue.Until)
			u.forgetChecks(w)
		case Evict:
			s.learn(u, false, now)
			u.Evicted = true
		case Expire:
			u.Phase, u.unadmitted, u.Evicted, u.Stopped, u.OverQuota, u.Unscheduled, u.AwaitsPods = Ended, false, false, false, false, false, false
		case MarkOverQuota, ClearOverQuota:
			u.OverQuota = kind == MarkOverQuota
		case MarkUnscheduled, ClearUnscheduled:
			u.Unscheduled = kind == MarkUnscheduled
		}
	}
	s.settle(u, now)
	s.outbox.post(u)
}

// notAdmitted records that the write of an admission has failed. A Reserved unit whose release failed can be evicted
// for others again.
func (s *Scheduler) notAdmitted(u *unit) {
	u.assumed = false
	if u.Phase == Reserved {
		s.moreToEvict(u.countedIn)
	}
}

func (e Refused) apply(s *Scheduler, now time.Time) {
	u := s.units[e.Write.Key]
	kind, underWay := s.outbox.answered(u, e.Write.Seq)
	if !underWay {
		return
	}
	if e.Now == nil || e.Now.UID != u.UID {
		s.forget(u, now)
		if e.Now != nil {
			UnitChanged{Unit: *e.Now}.apply(s, now)
		}
		return
	}
	if kind.admits() { // from now on its phase decides whether it is charged
		s.notAdmitted(u)
	}
	if e.Now.Version >= u.Version {
		s.update(u, e.Now, kind)
	}
	if kind == Explain {
		s.explainer.restore(u, e.Now.Reason)
	}
	s.withdrawOutdated(u)
	s.settle(u, now)
	s.outbox.post(u)
}

func (e Denied) apply(s *Scheduler, now time.Time) {
	u := s.units[e.Write.Key]
	kind, underWay := s.outbox.answered(u, e.Write.Seq)
	if !underWay {
		return
	}
	if kind.admits() {
		s.notAdmitted(u)
	}
	if kind.writesPlace() { // it does not show what was sent
		u.shown.clear()
	}
	if e.Write.Version >= u.Version {
		s.outbox.denied[u] = instantOf(e.Until)
		if u.Phase == Waiting { // it must not hold quota while it cannot be admitted
			u.unassume()
			u.requeueAt, u.Backoff = max(u.requeueAt, instantOf(e.Until)), e.Why
		}
	}
	s.withdrawOutdated(u)
	s.settle(u, now)
	s.outbox.post(u)
	s.schedule(u, now)
}

// endDenial allows writes to the unit again if its denial ends by then. The unit can then be evicted for others again.
func (s *Scheduler) endDenial(u *unit, by instant) {
	if until, is := s.outbox.denied[u]; is && until <= by {
		delete(s.outbox.denied, u)
		s.outbox.post(u)
		if u.Phase.holdsQuota() {
			s.moreToEvict(u.countedIn)
		}
	}
}

func (e QuotaChanged) apply(s *Scheduler, now time.Time) {
	units, replaced, booked := s.inOrder(), s.replaceLimits(), s.bookings
	s.backend, s.missing = e.Backend, e.Missing
	s.limits, _ = e.Backend.(quota.Exceedable)
	s.planner, _ = e.Backend.(quota.Planner)
	s.claims.forget(units)
	s.reclaims = s.planner != nil && slices.ContainsFunc(e.Backend.Groups(), s.planner.Reclaims)
	s.ledger = nil
	if lender, lends := e.Backend.(quota.Lender); lends && lender.Reserves() {
		s.ledger = newLedger(lender)
	}
	for _, q := range s.queues {
		s.explainer.forgetQueue(q)
	}
	s.waitIndex = queue.NewWaitIndex(s.room, s.backoff)
	s.tournament, s.unproven = newTournament(e.Backend), nil
	s.freed = nil
	clear(s.isFreed)
	s.order, s.frontsToCheck, s.placeless, s.bookings = nil, nil, evictions{}, nil
	clear(s.delayed)
	queues := s.queues
	s.queues, s.queueAt = map[string]*queueState{}, map[quota.NodeID]*queueState{}
	if s.backend != nil {
		s.addQueues(s.backend.Groups()...)
	}
	for name, q := range s.queues {
		if was := queues[name]; was != nil {
			q.sent, q.learned = was.sent, was.learned
		}
	}
	for _, u := range s.dropCharges(units) { // whether a unit can ever fit, and why not, depends on all charges
		s.chargeUnit(u)
	}
	s.chargeWithoutUnit()
	for _, u := range units {
		u.queue, u.memberAt = nil, 0
		u.item = queue.Item{Key: u.key()}
		u.countedIn, u.countedAs = nil, Waiting
		s.settle(u, now)
	}
	if s.backend != nil {
		for _, e := range s.endedBefore {
			if e.unit.queue != nil {
				e.unit.queue.evicted(e.at)
			}
		}
		s.endedBefore = nil
	}
	for _, b := range booked { // each stays with its unit
		if u := b.unit; s.planner != nil && u.queue != nil && u.queue.mayBook(u) && !s.isBookedAbove(u.queue, u) {
			s.bookFor(u)
		}
	}
	for _, q := range s.order {
		if q.counts[Waiting] > 0 {
			s.explainer.lookAt(q, now, CorrectionDelay)
		}
	}
	replaced()
}

func (e Observed) apply(s *Scheduler, now time.Time) {
	observer, observes := s.backend.(quota.Observer)
	if !observes {
		return
	}
	effect := observer.Observe(e.Seen)
	for _, space := range effect.Freed {
		s.wake(space)
	}
	if effect.Changed != nil {
		s.reconsider(effect.Changed, now)
	}
}

// inOrder returns all units, ordered by key.
func (s *Scheduler) inOrder() []*unit {
	return sortByKey(slices.AppendSeq(make([]*unit, 0, len(s.units)), maps.Values(s.units)))
}

// sortByKey orders the units by key, in place.
func sortByKey(units []*unit) []*unit {
	type keyed struct {
		key  string
		unit *unit
	}
	// Comparing adjacent keys is faster than reading each key from its unit.
	all := make([]keyed, len(units))
	for i, u := range units {
		all[i] = keyed{u.key(), u}
	}
	slices.SortFunc(all, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	for i, k := range all {
		units[i] = k.unit
	}
	return units
}
