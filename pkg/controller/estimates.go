package controller

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/visibility"
)

const (
	// predictionLasts and predictionCost limit all questions together to 2 % of a core: a prediction is used for at
	// least predictionLasts, and at least predictionCost times as long as it took.
	predictionLasts, predictionCost = 10 * time.Second, 50
	// mostShown is the maximum number of shown estimates that are remembered until their units start.
	mostShown = 20_000
)

// Estimates estimates when waiting units start. It computes estimates only on request, but always remembers how long
// jobs ran. It is safe for concurrent use.
type Estimates struct {
	clock clock.PassiveClock
	// scored counts the shown estimates that held and those that did not; it can be nil.
	scored func(held bool)

	// advising protects free, which is when questions about new units are back within their limit.
	advising sync.Mutex
	free     time.Time

	// played protects the fields up to learned. It is never held for long.
	played sync.Mutex
	// playing is whether the queues are being played forward, which can take seconds.
	playing bool
	// starts are the predicted starts by UID, used until stale. Before again, a unit behind the predicted ones does not
	// cause a new prediction. asked is the largest position in each queue that was asked about since the last
	// prediction, and covered the largest that the last prediction covers.
	starts         map[string]time.Time
	asked, covered map[string]int
	stale, again   time.Time

	// learned protects the fields below.
	learned sync.Mutex
	runs    forecast.RunTimes
	// scores are by queue, so that one tenant cannot spoil the ranges of another.
	scores map[string]*forecast.Scores
	// shown is the first estimate shown for each waiting unit, by UID.
	shown map[string]shownEstimate
}

// shownEstimate is an estimate that a user has seen.
type shownEstimate struct {
	visibility.Waiter
	at        time.Time
	predicted time.Duration
	forecast.Estimate
}

// NewEstimates returns Estimates for Config. When a unit with a shown estimate starts, it calls scored with whether the
// estimate held. scored can be nil.
func NewEstimates(clock clock.PassiveClock, scored func(held bool)) *Estimates {
	return &Estimates{clock: clock, scored: scored, asked: map[string]int{}, scores: map[string]*forecast.Scores{}, shown: map[string]shownEstimate{}}
}

// Of returns how long a unit will wait from at on. This is known only if the unit waits for quota alone.
func (e *Estimates) Of(m *visibility.Model, namespace, name string) (estimate forecast.Estimate, at time.Time, known bool) {
	if e == nil {
		return forecast.Estimate{}, time.Time{}, false
	}
	w, waits := m.Waiting(namespace, name)
	if !waits {
		return forecast.Estimate{}, time.Time{}, false
	}
	start, known := e.startOf(m, w)
	if !known {
		return forecast.Estimate{}, time.Time{}, false
	}
	e.learned.Lock()
	defer e.learned.Unlock()
	at = e.clock.Now()
	predicted := start.Sub(at)
	estimate = e.scoresOf(w.Queue).Estimate(predicted, w.Length)
	if _, again := e.shown[w.UID]; !again && len(e.shown) < mostShown {
		e.shown[w.UID] = shownEstimate{w, at, predicted, estimate}
	}
	return estimate, at, true
}

// Advise predicts what would happen to a new unit. All such questions together use at most 2 % of a core, except in
// short bursts. The error is for the caller.
func (e *Estimates) Advise(m *visibility.Model, namespace string, spec *v1alpha1.QueueUnitSpec, access visibility.Access) (*visibilityv1alpha1.QueueUnitReviewStatus, error) {
	if !access.Units(namespace) {
		return nil, fmt.Errorf("you may not list QueueUnits in namespace %q", namespace)
	}
	t, err := e.try(m, namespace, spec)
	if err != nil {
		return nil, err
	}
	status, err := t.Why(access)
	if err != nil {
		return nil, err
	}
	if status.Phase == string(v1alpha1.PhaseEnqueued) {
		status.Start = e.startEstimate(t)
	}
	if t.AllPods != nil {
		status.WithAllPods.Start = e.startEstimate(t.AllPods)
	}
	return status, nil
}

// try submits a new unit to a copy of the core, unless questions have used up their time.
func (e *Estimates) try(m *visibility.Model, namespace string, spec *v1alpha1.QueueUnitSpec) (*visibility.Trial, error) {
	e.advising.Lock()
	defer e.advising.Unlock()
	began := e.clock.Now()
	if wait := e.free.Sub(began); wait > predictionLasts {
		return nil, fmt.Errorf("kube-queue-controller has answered many questions about new units; ask again in %d s", (wait-predictionLasts)/time.Second+1)
	}
	t, err := m.Try(namespace, spec, e.left)
	ended := e.clock.Now()
	if e.free.Before(began) {
		e.free = began
	}
	e.free = e.free.Add(predictionCost * ended.Sub(began))
	return t, err
}

// startEstimate returns when a new unit starts; nil if this is not known.
func (e *Estimates) startEstimate(t *visibility.Trial) *visibilityv1alpha1.StartEstimate {
	if t.Start.After == simulator.NotKnown {
		return nil
	}
	e.learned.Lock()
	defer e.learned.Unlock()
	return visibility.StartEstimate(e.scoresOf(t.Queue).Estimate(t.Start.After, t.Length), e.clock.Now())
}

func (e *Estimates) scoresOf(queue string) *forecast.Scores {
	if e.scores[queue] == nil {
		if len(e.scores) >= forecast.MostQueues { // most of these queues no longer exist
			clear(e.scores)
		}
		e.scores[queue] = &forecast.Scores{}
	}
	return e.scores[queue]
}

// startOf returns when a unit is predicted to start. While another question plays the queues forward, it uses the last
// prediction.
func (e *Estimates) startOf(m *visibility.Model, w visibility.Waiter) (time.Time, bool) {
	e.played.Lock()
	defer e.played.Unlock()
	now := e.clock.Now()
	start, known := e.starts[w.UID]
	isBehind := false
	if !known && w.Position <= forecast.MostPredicted {
		// A client that pages through a queue asks about the next positions as well.
		e.asked[w.Queue] = max(e.asked[w.Queue], min(2*w.Position, forecast.MostPredicted))
		isBehind = w.Position > e.covered[w.Queue]
	}
	if !e.playing && (now.After(e.stale) || isBehind && now.After(e.again)) {
		e.play(m, now)
		start, known = e.starts[w.UID]
	}
	return start, known
}

// play plays the queues forward. It releases the lock meanwhile.
func (e *Estimates) play(m *visibility.Model, now time.Time) {
	e.playing, e.covered, e.asked = true, e.asked, map[string]int{}
	further := e.covered
	starts := e.unlocked(func() map[string]time.Time { return m.Starts(e.left, further) })
	ended := e.clock.Now()
	e.again = ended.Add(predictionCost * ended.Sub(now))
	e.starts, e.stale, e.playing = starts, e.again, false
	if least := ended.Add(predictionLasts); e.stale.Before(least) {
		e.stale = least
	}
}

// unlocked calls do without the lock.
func (e *Estimates) unlocked(do func() map[string]time.Time) map[string]time.Time {
	e.played.Unlock()
	defer e.played.Lock()
	return do()
}

func (e *Estimates) left(queue string, declared forecast.Declared, ran time.Duration) (time.Duration, bool) {
	e.learned.Lock()
	defer e.learned.Unlock()
	return e.runs.Left(queue, declared, ran)
}

// ended records that a unit of the queue has run.
func (e *Estimates) ended(queue string, declared forecast.Declared, ran time.Duration) {
	if e == nil {
		return
	}
	e.learned.Lock()
	defer e.learned.Unlock()
	e.runs.Ended(queue, declared, ran)
}

// started records that a unit was admitted.
func (e *Estimates) started(uid string, at time.Time) {
	if e == nil {
		return
	}
	e.learned.Lock()
	defer e.learned.Unlock()
	shown, was := e.shown[uid]
	if !was {
		return
	}
	delete(e.shown, uid)
	waited := at.Sub(shown.at)
	e.scoresOf(shown.Queue).Started(shown.predicted, shown.Length, waited)
	if e.scored != nil {
		e.scored(shown.Holds(waited))
	}
}

// gone forgets a unit that was deleted.
func (e *Estimates) gone(uid string) {
	if e == nil {
		return
	}
	e.learned.Lock()
	defer e.learned.Unlock()
	delete(e.shown, uid)
}
