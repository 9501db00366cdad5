package scheduler

import (
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// Options of a Scheduler.
type Options struct {
	// Policy of queues for which QueueChanged said nothing; RoundRobin if empty.
	Policy queue.Policy
	// Backoff of policy RoundRobin; the default where it is zero.
	Backoff queue.Backoff
	// Explanations is the most writes of why units wait that may be under way at a
	// time; 0: any number. Where it is set, one begins each ExplainInterval at most
	// while others are under way: they come in crowds, and must not hold up releases.
	Explanations int
}

// Scheduler is the core. The package comment describes it.
type Scheduler struct {
	defaultPolicy queue.Policy
	backoff       queue.Backoff
	settings      map[string]QueueChanged

	units   map[string]*unit
	backend quota.Backend
	missing *quota.Refusal
	// lender is the backend, where borrowing can be paused; else nil.
	lender quota.Lender
	queues map[string]*queueState
	// lineAt finds lines by their groups' own nodes.
	queueAt    map[quota.NodeID]*queueState
	waitIndex  *queue.WaitIndex
	tournament *tournament
	// order lists the lines as the backend does its groups; blocking are those of
	// policy Block, claiming those with claims.
	order, blocking, claiming []*queueState
	// frontsToCheck are the lines of policy Block that may have another unit in front.
	frontsToCheck []*queueState
	// freed are the spaces that may have more room than when they were last looked at,
	// in the order in which they were freed.
	freed   []quota.Space
	isFreed map[quota.Space]bool
	// unproven are the lines of which it is not known whether what they try fits.
	unproven []*queueState

	outbox    outbox
	explainer explainer
	timers    timers

	flushAt          time.Time
	flushes, rescued int
}

// line is a queue and what is counted about it.
type queueState struct {
	*queue.Queue
	name string
	// set is what an administrator has set.
	set QueueChanged
	// tried is the item to try next, nil when there is none.
	tried      *queue.Item
	unproven   bool
	checkFront bool
	front      *unit
	// claimants are the shapes that have claims, those spaces where borrowing is paused
	// for them.
	claimants []*queue.Shape
	claims    map[*queue.Shape][]quota.Space
	// causeChanges are the explainer's timers of the line's shapes.
	causeChanges map[*queue.Shape]*causeChange
	counts       [Ended + 1]int
	changed      bool
}

// New makes a core that knows of no unit and no quota.
func New(opts Options) *Scheduler {
	if opts.Policy == "" {
		opts.Policy = queue.RoundRobin
	}
	if opts.Backoff == (queue.Backoff{}) {
		opts.Backoff = queue.DefaultBackoff()
	}
	s := &Scheduler{
		defaultPolicy: opts.Policy,
		backoff:       opts.Backoff,
		outbox:        outbox{mostExplaining: opts.Explanations},
		settings:      map[string]QueueChanged{},
		units:         map[string]*unit{},
		queues:        map[string]*queueState{},
		timers:        newTimers(),
		explainer:     newExplainer(),
		isFreed:       map[quota.Space]bool{},
		missing:       &quota.Refusal{Reason: wellknown.ReasonNoQuota, Sentence: "the quota has not been read yet"},
	}
	s.waitIndex = queue.NewWaitIndex(s.room, s.backoff)
	return s
}

// Apply takes in what happened. now is the time at which it is taken in; it
// never goes back.
func (s *Scheduler) Apply(now time.Time, e Event) { e.apply(s, now) }

func (e UnitChanged) apply(s *Scheduler, now time.Time) {
	u := s.units[e.Unit.Key]
	if u != nil && u.UID != e.Unit.UID {
		s.forget(u)
		u = nil
	}
	if u == nil {
		u = newUnit(&e.Unit)
		s.explainer.restore(u, e.Unit.Reason)
		s.units[e.Unit.Key] = u
		s.settle(u, now)
		return
	}
	if e.Unit.Version <= u.Version {
		return
	}
	u.update(&e.Unit)
	s.settle(u, now)
}

// Knows reports whether a unit of that key is there.
func (s *Scheduler) Knows(key string) bool { return s.units[key] != nil }

func (e UnitGone) apply(s *Scheduler, _ time.Time) {
	if u := s.units[e.Key]; u != nil && u.UID == e.UID {
		s.forget(u)
	}
}

func (s *Scheduler) forget(u *unit) {
	u.gone, u.assumed = true, false
	s.outbox.discard(u)
	s.leave(u)
	s.uncharge(u)
	s.count(u, nil, Ended)
	s.timers.set(u, 0)
	delete(s.units, u.key())
}

func (e Written) apply(s *Scheduler, now time.Time) {
	u := s.units[e.Key]
	kind, underWay := s.outbox.answered(u, e.Seq)
	if !underWay {
		return
	}
	if kind == Dequeue { // it is charged if what is known of it says so
		u.assumed = false
	}
	if e.Version > u.Version {
		u.Version = e.Version
		switch kind {
		case Dequeue:
			u.Phase = Dequeued
			u.dequeuedAt, u.Evicted, u.Stopped = instantOf(e.DequeuedAt), false, false
			u.Quota = e.Quota
			u.Attempts++
		case Requeue:
			u.Phase, u.Evicted, u.Stopped = Waiting, false, false
		case Evict:
			u.Evicted = true
		}
	}
	s.settle(u, now)
	s.outbox.post(u)
}

func (e Refused) apply(s *Scheduler, now time.Time) {
	u := s.units[e.Key]
	kind, underWay := s.outbox.answered(u, e.Seq)
	if !underWay {
		return
	}
	if e.Now == nil || e.Now.UID != u.UID {
		s.forget(u)
		if e.Now != nil {
			UnitChanged{Unit: *e.Now}.apply(s, now)
		}
		return
	}
	if kind == Dequeue { // it is charged if what it is now says so
		u.assumed = false
	}
	if e.Now.Version >= u.Version {
		u.update(e.Now)
	}
	if kind == Explain {
		s.explainer.restore(u, e.Now.Reason)
	}
	s.settle(u, now)
	s.outbox.post(u)
}

func (e QuotaChanged) apply(s *Scheduler, now time.Time) {
	s.backend, s.missing = e.Backend, e.Missing
	s.lender = nil
	if lender, lends := e.Backend.(quota.Lender); lends && lender.Pauses() {
		s.lender = lender
	}
	for _, l := range s.queues {
		s.explainer.forgetLine(l)
	}
	s.waitIndex = queue.NewWaitIndex(s.room, s.backoff)
	s.tournament, s.unproven = newTournament(e.Backend), nil
	s.freed = nil
	clear(s.isFreed)
	s.order, s.blocking, s.claiming, s.frontsToCheck = nil, nil, nil, nil
	s.queues, s.queueAt = map[string]*queueState{}, map[quota.NodeID]*queueState{}
	if s.backend != nil {
		s.addLines(s.backend.Groups()...)
	}
	for _, u := range s.inOrder() {
		// What was charged to the old backend goes with it.
		u.charged, u.queue = nil, nil
		u.item = queue.Item{Key: u.key()}
		u.countedIn, u.countedAs = nil, Waiting
		s.settle(u, now)
	}
}

func (s *Scheduler) addLines(groups ...quota.Group) {
	var added []*queueState
	for _, group := range groups {
		l := &queueState{Queue: queue.New(group, s.defaultPolicy, s.waitIndex), name: group.Queue(),
			set: QueueChanged{Queue: group.Queue(), Policy: s.defaultPolicy}, changed: true,
			causeChanges: map[*queue.Shape]*causeChange{}, claims: map[*queue.Shape][]quota.Space{}}
		if set, ok := s.settings[l.name]; ok {
			l.set, l.Policy = set, set.Policy
		}
		s.queues[l.name], s.queueAt[group.Nodes()[0]] = l, l
		added = append(added, l)
	}
	s.tournament.enter(added...)
	s.order = append(s.order, added...)
	s.listBlocking()
}

func (s *Scheduler) listBlocking() {
	s.blocking = nil
	for _, l := range s.order {
		if l.Policy == queue.Block {
			s.blocking = append(s.blocking, l)
		}
	}
}

func (e QueueChanged) apply(s *Scheduler, now time.Time) {
	if e.Policy == "" {
		e.Policy = s.defaultPolicy
	}
	s.settings[e.Queue] = e
	l := s.queues[e.Queue]
	if l == nil || l.set == e {
		return
	}
	if l.Policy != e.Policy {
		l.SetPolicy(e.Policy) // with which all are tried again: who has claims depends on it
	}
	l.set, l.changed = e, true
	s.listBlocking()
	s.activate(l)
	for _, u := range s.inOrder() {
		if u.queue == l {
			s.settle(u, now)
		}
	}
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

// reconsider asks again for all that waits in the line of a group: what was refused
// may be possible, and what was possible may never be any more.
func (s *Scheduler) reconsider(group quota.Group, now time.Time) {
	l := s.queues[group.Queue()]
	if l == nil {
		s.addLines(group)
		l = s.queues[group.Queue()]
	}
	l.Shapes(func(shape *queue.Shape) {
		s.explainer.forget(l, shape) // another limit is news, whatever was reported before
		l.Retry(shape)
		s.refuseForGood(l, shape, now)
		for _, item := range shape.Items() {
			s.explainLater(s.units[item.Key], now)
		}
	})
	s.activate(l)
	s.dropIdle(l)
}

// dropIdle forgets the line of a group that is there only while units are in it, and
// has none.
func (s *Scheduler) dropIdle(l *queueState) {
	if l.counts != [Ended + 1]int{} || slices.Contains(s.backend.Groups(), l.Group) {
		return
	}
	s.tournament.leave(l)
	delete(s.queues, l.name)
	delete(s.queueAt, l.Group.Nodes()[0])
	isIt := func(other *queueState) bool { return other == l }
	s.order = slices.DeleteFunc(s.order, isIt)
	s.unproven = slices.DeleteFunc(s.unproven, isIt)
	s.frontsToCheck = slices.DeleteFunc(s.frontsToCheck, isIt)
	s.listBlocking()
}

// inOrder lists the units by key, for work that touches them all.
func (s *Scheduler) inOrder() []*unit {
	all := make([]*unit, 0, len(s.units))
	for _, u := range s.units {
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b *unit) int {
		return strings.Compare(a.key(), b.key())
	})
	return all
}
