package scheduler

import (
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// Options of a Scheduler.
type Options struct {
	// Policy of queues for which PolicyChanged said nothing; RoundRobin if empty.
	Policy queue.Policy
}

// Scheduler is the core. The package comment describes it.
type Scheduler struct {
	defaultPolicy queue.Policy
	settings      map[string]PolicyChanged

	units   map[string]*unit
	backend quota.Backend
	missing *quota.Refusal
	lines   map[string]*line
	lot     *queue.Lot
	// active holds the lines that have something to try.
	active *queue.Heap[*line]

	// outbox holds units that a write is wanted for and none is under way.
	outbox []*unit
	timers *queue.Heap[*timer]
	seq    uint64

	flushAt time.Time
	rescued int
}

// line is a queue and what is counted about it.
type line struct {
	*queue.Queue
	name    string
	late    bool
	tried   *queue.Item
	front   *unit
	counts  [Ended]int
	changed bool
}

// unit is a Unit and what has been decided about it.
type unit struct {
	Unit
	item queue.Item
	// line that the unit belongs to by its namespace; nil when it has none.
	line *line
	// homeless says why there is no line.
	homeless *quota.Refusal
	// group and demand that the unit is charged with; nil when it is not.
	group  quota.Group
	demand quota.Demand
	// assumed: charged, and the write that says so is not confirmed.
	assumed bool

	// sent is the number of the write under way, 0 when there is none.
	sent     uint64
	sentKind Kind
	// wanted is the kind of the next write, 0 when none is.
	wanted Kind
	// posted: in the outbox.
	posted bool

	// since when the unit waits; zero when it does not.
	since time.Time
	// told is what the unit shows its users, and tellAt when to look whether it
	// is still true.
	told   told
	tellAt time.Time
	timer  timer
	counts countedAs
	gone   bool
}

type countedAs struct {
	line  *line
	phase Phase
}

// New makes a core that knows of no unit and no quota.
func New(opts Options) *Scheduler {
	if opts.Policy == "" {
		opts.Policy = queue.RoundRobin
	}
	s := &Scheduler{
		defaultPolicy: opts.Policy,
		settings:      map[string]PolicyChanged{},
		units:         map[string]*unit{},
		lines:         map[string]*line{},
		lot:           queue.NewLot(),
		timers:        newTimers(),
		missing:       &quota.Refusal{Reason: quota.ReasonNoQuota, Sentence: "no quota is known yet"},
	}
	s.active = newActive()
	return s
}

// newActive orders lines: those that have room only they can use last, then by
// rank, then by the age of the item to be tried. Priorities of jobs in different
// queues are never compared.
func newActive() *queue.Heap[*line] {
	return queue.NewHeap(func(a, b *line) bool {
		if a.late != b.late {
			return b.late
		}
		if a.Rank != b.Rank {
			return a.Rank > b.Rank
		}
		return a.tried.Older(b.tried)
	}, func(l *line) *int { return &l.ActivePlace })
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
		u = &unit{Unit: e.Unit}
		u.told = told{cause: quota.Cause{Reason: e.Unit.Reason}, restored: true}
		u.timer.key, u.timer.unit = e.Unit.Key, u
		s.units[u.Key] = u
		s.settle(u, now)
		return
	}
	if e.Unit.Version <= u.Version {
		return
	}
	s.take(u, e.Unit, now)
}

// take makes the unit what it is now known to be.
func (s *Scheduler) take(u *unit, now Unit, at time.Time) {
	u.become(now)
	s.settle(u, at)
}

// become makes the unit what it is now known to be, and drops what was decided and
// not sent if it no longer holds. While a release is under way the unit stays
// assumed, whatever a version from before the release says.
func (u *unit) become(now Unit) {
	if now.Partial {
		now.Demand, now.QuotaName, now.Priority, now.Submitted = u.Demand, u.QuotaName, u.Priority, u.Submitted
	}
	if u.wanted == Dequeue && changesDecision(u.Unit, now) {
		u.unassume()
	}
	u.Unit = now
	if now.Phase != Waiting {
		u.unassume()
	}
}

// changesDecision tells whether a decision to release has to be made again
// though its write has not been sent.
func changesDecision(before, now Unit) bool {
	return now.Held != nil || now.RequeueAt.After(before.RequeueAt) || now.QuotaName != before.QuotaName ||
		!now.Demand.Equal(before.Demand)
}

func (e UnitGone) apply(s *Scheduler, _ time.Time) {
	if u := s.units[e.Key]; u != nil && u.UID == e.UID {
		s.forget(u)
	}
}

func (s *Scheduler) forget(u *unit) {
	u.gone, u.assumed, u.wanted = true, false, 0
	s.leave(u)
	s.uncharge(u)
	s.count(u, nil, Ended)
	s.timers.Remove(&u.timer)
	delete(s.units, u.Key)
}

// answered finds the unit whose write under way has this number, and tells the
// write's kind; the write is no longer under way. An outcome that nobody waits for
// has no unit.
func (s *Scheduler) answered(key string, seq uint64) (*unit, Kind) {
	u := s.units[key]
	if u == nil || u.sent != seq {
		return nil, 0
	}
	kind := u.sentKind
	u.sent, u.sentKind = 0, 0
	return u, kind
}

func (e Written) apply(s *Scheduler, now time.Time) {
	u, kind := s.answered(e.Key, e.Seq)
	if u == nil {
		return
	}
	if kind == Dequeue { // it is charged if what is known of it says so
		u.assumed = false
	}
	if e.Version > u.Version {
		u.Version = e.Version
		switch kind {
		case Dequeue:
			u.Phase, u.Reason = Dequeued, ""
			u.DequeuedAt, u.Evicted, u.Stopped = e.DequeuedAt, false, false
			u.Attempts++
		case Requeue:
			u.Phase, u.Evicted, u.Stopped = Waiting, false, false
		case Evict:
			u.Evicted = true
		}
	}
	s.settle(u, now)
	s.post(u)
}

func (e Refused) apply(s *Scheduler, now time.Time) {
	u, kind := s.answered(e.Key, e.Seq)
	if u == nil {
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
		u.become(*e.Now)
	}
	if kind == Explain {
		u.told = told{cause: quota.Cause{Reason: u.Reason}, restored: true}
	}
	s.settle(u, now)
	s.post(u)
}

func (e QuotaChanged) apply(s *Scheduler, now time.Time) {
	s.backend, s.missing = e.Backend, e.Missing
	for _, t := range slices.Clone(s.timers.All()) {
		if t.shape != nil { // of the old backend
			s.timers.Remove(t)
		}
	}
	s.lot = queue.NewLot()
	s.active = newActive()
	s.lines = map[string]*line{}
	if s.backend != nil {
		for _, group := range s.backend.Groups() {
			s.addLine(group)
		}
	}
	for _, u := range s.inOrder() {
		// What was charged to the old backend goes with it.
		u.group, u.line = nil, nil
		u.item = queue.Item{}
		u.counts = countedAs{}
		s.settle(u, now)
	}
}

func (s *Scheduler) addLine(group quota.Group) {
	l := &line{Queue: queue.New(group, s.defaultPolicy, s.lot), name: group.Queue(), changed: true}
	if set, ok := s.settings[l.name]; ok {
		l.Policy, l.Rank = set.Policy, set.Rank
	}
	s.lines[l.name] = l
}

func (e PolicyChanged) apply(s *Scheduler, now time.Time) {
	if e.Policy == "" {
		e.Policy = s.defaultPolicy
	}
	s.settings[e.Queue] = e
	l := s.lines[e.Queue]
	if l == nil || (l.Policy == e.Policy && l.Rank == e.Rank) {
		return
	}
	l.Policy, l.Rank, l.changed = e.Policy, e.Rank, true
	s.activate(l)
	for _, u := range s.inOrder() {
		if u.line == l && u.item.Shape() != nil {
			s.tellLater(u, now)
		}
	}
}

// inOrder lists the units by key, for work that touches them all.
func (s *Scheduler) inOrder() []*unit {
	all := make([]*unit, 0, len(s.units))
	for _, u := range s.units {
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b *unit) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return all
}
