package scheduler

import (
	"cmp"
	"slices"
	"time"
	"unique"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

const (
	// ReasonDelay is how long a unit waits before it shows a reason.
	ReasonDelay = time.Second
	// ReasonInterval is how long a new cause must last before it replaces a cause that is still true. It is also the
	// shortest time between two reports of a cause that comes and goes.
	ReasonInterval = 30 * time.Second
	// CorrectionDelay is how long a unit shows a cause that is no longer true before it is corrected. Causes that
	// last for a shorter time are not reported.
	CorrectionDelay = 500 * time.Millisecond
	// PromptUnits is how many units per queue and promptPeriod are corrected before the units of other queues.
	PromptUnits  = 100
	promptPeriod = 2 * time.Second
	// lookAgain is how soon to compare the first units of a queue again if they do not show why they wait.
	lookAgain = time.Second
)

// explainer stores which cause each waiting unit shows, and decides when to compare it with the current cause. It
// requests no writes: an explanation is composed when it is sent, and show records it.
//
// All units of a shape are refused for the same cause. A short-lived cause is not worth one write per unit, so a new
// cause must last for ReasonInterval before it replaces the one that the units show.
//
// A cause that is no longer true is corrected earlier. After a change of the unit, its queue or its quota, that takes
// CorrectionDelay. Usage changes all the time, so a change of usage only leads to a comparison if a shape of the queue
// is refused for a new cause, and then only of the first PromptUnits.
//
// Invariants:
//
//   - Units that show the same cause share one copy of it, because many units share a few causes.
//   - A shape has at most one timer, which is in both changes and the causeChanges of its queue.
//   - A unit has a history only if it has shown another cause within historyFor.
type explainer struct {
	// silent is whether nothing is explained.
	silent bool
	// changes are the shapes with a new cause, ordered by the time at which their items report it.
	changes *queue.Heap[*causeChange]
	// looks are the queues whose first units are compared, ordered by time.
	looks *queue.Heap[*queueState]
	// corrections are the units that show a cause that is no longer true.
	corrections []*unit
	// prompt is the remaining budget for units without a queue.
	prompt promptBudget
	// history is the series of causes that units have shown. Old ones are removed at sweepAt.
	history map[*unit][]report
	sweepAt instant
}

// promptBudget is how many units can still be corrected before others until a given time.
type promptBudget struct {
	left  int
	until instant
}

// take reports whether a unit can be corrected before others, and uses up the budget.
func (b *promptBudget) take(now time.Time) bool {
	if instantOf(now) >= b.until {
		b.left, b.until = PromptUnits, instantOf(now).plus(promptPeriod)
	}
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}

// shown is the part of a unit that belongs to the explainer.
type shown struct {
	// cause is the cause that the unit shows, since at; the zero Handle if none. at is 0 if it was read from the unit.
	cause unique.Handle[quota.Cause]
	at    instant
	// waitingSince is when the unit began to wait; 0 if it does not wait.
	waitingSince instant
	// checkAt is when to compare the cause with the current one; 0 means never.
	checkAt instant
}

// causeChange is the timer of a shape with a new cause.
type causeChange struct {
	at    instant
	queue *queueState
	shape *queue.Shape
	place int32
}

func newExplainer(silent bool) explainer {
	return explainer{
		silent: silent,
		changes: queue.NewHeap(func(a, b *causeChange) bool { return a.before(b) },
			func(c *causeChange) *int32 { return &c.place }),
		looks: queue.NewHeap(func(a, b *queueState) bool {
			return cmp.Or(cmp.Compare(a.lookAt, b.lookAt), cmp.Compare(a.name, b.name)) < 0
		}, func(q *queueState) *int32 { return &q.lookPlace }),
		history: map[*unit][]report{},
	}
}

func (c *causeChange) before(other *causeChange) bool {
	by := cmp.Or(cmp.Compare(c.at, other.at), cmp.Compare(c.queue.name, other.queue.name), cmp.Compare(c.shape.Key(), other.shape.Key()))
	return by < 0
}

// restore records the reason that was read from the unit.
func (e *explainer) restore(u *unit, reason wellknown.Reason) {
	u.shown.cause, u.shown.at = one(quota.Cause{Reason: reason}), 0
}

// one returns the shared copy of the cause; the zero Handle for the zero Cause.
func one(cause quota.Cause) unique.Handle[quota.Cause] {
	if cause == (quota.Cause{}) {
		return unique.Handle[quota.Cause]{}
	}
	return unique.Make(cause)
}

// causeOf is the inverse of one.
func causeOf(handle unique.Handle[quota.Cause]) quota.Cause {
	if handle == (unique.Handle[quota.Cause]{}) {
		return quota.Cause{}
	}
	return handle.Value()
}

// clear records that the unit shows no cause.
func (s *shown) clear() { s.cause, s.at = one(quota.Cause{}), 0 }

// restored reports whether the cause was read from the unit, which contains only its reason.
func (s *shown) restored() bool { return s.at == 0 && s.last() != (quota.Cause{}) }

// startWaiting records that the unit waits. The unit may already be waiting.
func (s *shown) startWaiting(now time.Time) {
	s.waitingSince = cmp.Or(s.waitingSince, instantOf(now))
}

// stopWaiting records that the unit does not wait.
func (s *shown) stopWaiting() { s.waitingSince, s.checkAt = 0, 0 }

// last returns the cause that the unit shows; the zero Cause if none.
func (s *shown) last() quota.Cause {
	return causeOf(s.cause)
}

// shows reports whether the unit shows the cause. For a cause that was written before the start, only the reason and
// the group are known, so a cause with a detail is written again.
func (u *unit) shows(c quota.Cause) bool {
	if u.shown.restored() {
		return c.Detail == "" && u.shown.last().Reason == c.Reason && (u.queue == nil || u.Quota == u.queue.Group.Path())
	}
	return u.shown.last() == c
}

// explainLater schedules the comparison of the cause that the unit shows with the current one. A cause that is no
// longer true is compared soon, even if the unit keeps changing.
func (s *Scheduler) explainLater(u *unit, now time.Time) {
	at := instant(0)
	if !s.explainer.silent {
		at = u.nextCheck(now)
	}
	if at != 0 && s.isOutdated(u, now) && !u.isImpossible(now) {
		at = instantOf(now).plus(CorrectionDelay)
		if u.shown.checkAt >= instantOf(now) {
			at = min(at, u.shown.checkAt)
		}
	}
	u.shown.checkAt = at
	s.schedule(u, now)
}

// explain requests the explanation of the unit if the unit does not show why it waits. If it is too early, it
// schedules the explanation.
func (s *Scheduler) explain(u *unit, now time.Time) {
	r := u.refusal(now)
	if r == nil || u.shows(r.Cause()) {
		return
	}
	switch outdated := s.isOutdated(u, now); {
	case u.isImpossible(now):
		s.outbox.want(u, Explain)
		s.outbox.wantFirst(u)
	case outdated && !s.explainer.comesAndGoes(u, r.Cause(), now):
		s.explainer.corrections = append(s.explainer.corrections, u)
	default:
		switch at := u.nextCheck(now); {
		case at > instantOf(now):
			u.shown.checkAt = at
			s.schedule(u, now)
		case at != 0 && (outdated || !u.causeUnsettled(r)):
			s.outbox.want(u, Explain)
		}
	}
}

// sendCorrections requests the explanations of units that show a cause that is no longer true: first those at the
// head of each queue, then the others in the order of their queues.
func (s *Scheduler) sendCorrections(now time.Time) {
	units := s.explainer.corrections
	s.explainer.corrections = nil
	if len(units) == 0 {
		return
	}
	slices.SortFunc(units, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(b.cappedPriority(), a.cappedPriority()), cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.key(), b.key()))
	})
	ranks, ranked := map[*queueState]int{}, make(map[*unit]int, len(units))
	for _, u := range units {
		ranked[u] = ranks[u.queue]
		ranks[u.queue]++
	}
	slices.SortStableFunc(units, func(a, b *unit) int { return cmp.Compare(ranked[a], ranked[b]) })
	for _, u := range units {
		budget := &s.explainer.prompt
		if u.queue != nil {
			budget = &u.queue.prompt
		}
		prompt := budget.take(now)
		s.outbox.correct(u, prompt)
		if !prompt && u.queue != nil {
			s.explainer.lookAt(u.queue, now, lookAgain)
		}
	}
}

// cappedPriority is the priority of the unit as limited by its queue.
func (u *unit) cappedPriority() int32 {
	if u.queue == nil {
		return u.Priority
	}
	return u.queue.set.MaxPriority.Of(u.Priority)
}

// lookAt schedules the comparison of the first units of the queue, unless an earlier one is scheduled.
func (e *explainer) lookAt(q *queueState, now time.Time, after time.Duration) {
	at := instantOf(now).plus(after)
	if !e.silent && (!e.looks.Has(q) || at < q.lookAt) {
		q.lookAt = at
		e.looks.Set(q)
	}
}

// look compares what the first units of the queue show with why they wait. It repeats as long as one of them shows
// something else, because the cause can become untrue without another refusal.
func (s *Scheduler) look(q *queueState, now time.Time) {
	again := len(s.outbox.rest) > 0
	for _, item := range q.First(PromptUnits) {
		u := s.units[item.Key]
		if u.shown.last() == (quota.Cause{}) || u.write.prompt || u.write.sent == Explain {
			continue
		}
		if r := u.refusal(now); r == nil || u.shows(r.Cause()) {
			continue
		}
		again = true
		s.explain(u, now)
	}
	if again {
		s.explainer.lookAt(q, now, lookAgain)
	}
}

// nextCheck returns when to compare the cause that the unit shows with the current one if it is still true. That is
// as soon as the intervals allow, or immediately if the unit can never fit; 0 means never.
func (u *unit) nextCheck(now time.Time) instant {
	if u.shown.waitingSince == 0 || u.HeldReported && u.Held != nil {
		return 0
	}
	at := u.shown.waitingSince.plus(ReasonDelay)
	switch {
	case u.shown.at == 0:
	case u.Phase == Reserved:
		at = u.shown.at.plus(CheckInterval)
	default:
		at = u.shown.at.plus(ReasonInterval)
	}
	if u.isImpossible(now) {
		at = 0
	}
	return max(at, instantOf(now))
}

// isImpossible reports whether the unit can never fit and does not show that.
func (u *unit) isImpossible(now time.Time) bool {
	r := u.refusal(now)
	return r != nil && r.Impossible() && u.shown.last().Reason != r.Reason
}

// causeUnsettled reports whether the cause is too new to replace the one that the units of the shape show.
func (u *unit) causeUnsettled(r *quota.Refusal) bool {
	shape := u.item.Shape()
	if shape == nil || r != shape.Refusal() {
		return false
	}
	shown := causeOf(shape.Shown)
	return shown != (quota.Cause{}) && shown != shape.Cause() && u.shows(shown)
}

// refused processes the refusal of a shape. The cause can differ from the previous one and from the one that its
// items show.
func (e *explainer) refused(q *queueState, shape *queue.Shape, before quota.Cause, now time.Time) {
	if e.silent {
		return
	}
	if before != (quota.Cause{}) && before != shape.Cause() {
		e.lookAt(q, now, CorrectionDelay)
	}
	change := q.causeChanges[shape]
	switch shown := causeOf(shape.Shown); {
	case shown == shape.Cause():
		e.stop(change)
	case shown == quota.Cause{}: // the timers of the items report the first cause
		shape.Shown = one(shape.Cause())
	case change == nil:
		change = &causeChange{at: instantOf(now.Add(ReasonInterval)), queue: q, shape: shape}
		q.causeChanges[shape] = change
		e.changes.Set(change)
	}
}

// forget makes the next cause of the shape count as its first.
func (e *explainer) forget(q *queueState, shape *queue.Shape) {
	e.stop(q.causeChanges[shape])
	shape.Shown = one(quota.Cause{})
}

// forgetQueue removes the timers of the queue and of all its shapes.
func (e *explainer) forgetQueue(q *queueState) {
	e.looks.Remove(q)
	for _, change := range q.causeChanges {
		e.stop(change)
	}
}

// stop removes a timer. It does nothing if the timer is nil.
func (e *explainer) stop(change *causeChange) {
	if change == nil {
		return
	}
	e.changes.Remove(change)
	delete(change.queue.causeChanges, change.shape)
}

// next returns when the first timer of a shape or of a queue ends; 0 if there is none.
func (e *explainer) next() (at instant) {
	if change, ok := e.changes.Top(); ok {
		at = change.at
	}
	if q, ok := e.looks.Top(); ok {
		at = earliest(at, q.lookAt)
	}
	return at
}

// dueLooks removes and returns the queues whose first units must be compared, ordered by time and then by name.
func (e *explainer) dueLooks(now instant) (queues []*queueState) {
	for q, ok := e.looks.Top(); ok && q.lookAt <= now; q, ok = e.looks.Top() {
		e.looks.Remove(q)
		queues = append(queues, q)
	}
	return queues
}

// due removes and returns the shapes whose new cause has lasted long enough, ordered by time and
// then by name.
func (e *explainer) due(now instant) (shapes []*queue.Shape) {
	for change, ok := e.changes.Top(); ok && change.at <= now; change, ok = e.changes.Top() {
		e.stop(change)
		change.shape.Shown = one(change.shape.Cause())
		shapes = append(shapes, change.shape)
	}
	return shapes
}
