// Package loadgen creates the units of a scenario and simulates their jobs, as job-extensions
// would: it creates a unit at its time, observes its release and writes its end after its run time.
//
// Terms. A Client sends the requests of one user with package wire. A Run is one run of a scenario
// and contains the outcome of each unit.
//
// The load generator shares the machine with the programs that it measures, so it discards
// responses and reads only some fields of watch events. It sends the same writes as job-extensions,
// and no others.
//
// Invariant: a unit is created at its time even if others are late (an open loop). A late unit is
// created immediately, and its delay is recorded.
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/scenario"
	"kube-queue.dev/kube-queue/test/perf/wire"
)

// The maximum numbers of concurrent creates and ends. Creates are limited as in job-extensions,
// which has 8 workers for each kind. Ends are caused by any number of jobs.
const (
	createsInFlight = 8
	endsInFlight    = 32
)

// Unit has the measurements of one unit. Times are relative to the start of the run. 0 means never.
type Unit struct {
	// Due is the planned time of the create, Sent the time of the request. Created and Ended are
	// the times of the responses, Released is the time of the watch event.
	Due, Sent, Created, Released, Ended time.Duration
	// Releases is how often the unit was released. It must be 1.
	Releases int

	reported bool
	phase    phase
	version  string
}

type phase byte

const (
	waiting phase = iota
	released
	ended
)

// Counts is the progress of a run.
type Counts struct {
	Created, Released, Ended int
	// Reported counts units with a reason for waiting.
	Reported int
	// Conflicts counts ends that failed because the unit had changed, Retried counts requests that
	// were repeated because the API server was unavailable.
	Conflicts, Retried int
	// LastEvent is the time of the last watch event, LastRelease that of the last release.
	LastEvent, LastRelease time.Duration
}

// Run is one run of a scenario.
type Run struct {
	scenario   *scenario.Scenario
	client     *Client
	arrivals   []scenario.Arrival
	namespaces []string
	start      time.Time
	// due has the released units whose jobs have run long enough. It has room for all units.
	due chan int
	// turnover leaves the ends of units to TurnOver.
	turnover bool
	// moved is the time of the last change made by act.
	moved time.Duration

	mu     sync.Mutex
	units  []Unit
	counts Counts
}

// NewRun prepares a run of the scenario.
func NewRun(client *Client, s *scenario.Scenario) *Run {
	arrivals := s.Arrivals()
	return &Run{scenario: s, client: client, arrivals: arrivals, namespaces: s.Namespaces(),
		due: make(chan int, len(arrivals)), units: make([]Unit, len(arrivals))}
}

// Counts returns the progress.
func (s *Run) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Elapsed returns the time since the start.
func (s *Run) Elapsed() time.Duration { return time.Since(s.start) }

// Play watches, creates and ends units until act returns. act waits for the events of the scenario.
// If anything fails, the context of act is cancelled and Play returns the error.
func (s *Run) Play(ctx context.Context, act func(context.Context) error) error {
	version, err := s.client.Version(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.start = time.Now()
	var group sync.WaitGroup
	for _, part := range []func(context.Context) error{
		func(ctx context.Context) error { return s.watch(ctx, version) },
		func(ctx context.Context) error {
			due := func(index int) time.Duration { return s.arrivals[index].At }
			return pace.InTime(ctx, s.start, len(s.arrivals), due, createsInFlight, s.create)
		},
		func(ctx context.Context) error {
			if s.turnover {
				return nil
			}
			return pace.Crew(ctx, endsInFlight, s.due, s.end)
		},
	} {
		group.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	err = act(ctx)
	// The cause of the context's end is more useful than the error of act that results from it.
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	group.Wait()
	return err
}

// Until waits until the condition holds.
func (s *Run) Until(ctx context.Context, holds func(Counts) bool) error {
	return pace.Until(ctx, 20*time.Millisecond, func(context.Context) (bool, error) { return holds(s.Counts()), nil })
}

// RunStream runs a scenario of kind Stream until each unit was released and has ended.
func (s *Run) RunStream(ctx context.Context) error {
	return s.Play(ctx, func(ctx context.Context) error {
		return s.reach(ctx, "all have ended", func(c Counts) bool { return c.Ended == len(s.units) })
	})
}

// stall is the time without events after which a run fails.
const stall = 2 * time.Minute

// reach waits for a state. It fails if nothing happens for too long.
func (s *Run) reach(ctx context.Context, state string, holds func(Counts) bool) error {
	stalled := false
	err := s.Until(ctx, func(c Counts) bool {
		last := c.LastEvent
		if c.Created < len(s.units) {
			// A scenario can have long intervals between arrivals.
			last = max(last, s.arrivals[c.Created].At)
		}
		stalled = s.Elapsed()-max(last, s.moved) > stall
		return stalled || holds(c)
	})
	if err == nil && stalled && !holds(s.Counts()) {
		return fmt.Errorf("no event for %v while waiting until %s: %s; see the log of the controller", stall, state, s.Progress())
	}
	return err
}

// watch watches units, and restarts watches that the server ends.
func (s *Run) watch(ctx context.Context, version string) error {
	for ctx.Err() == nil {
		var err error
		err = s.retry(ctx, func() error {
			version, err = s.client.Watch(ctx, version, s.see)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// see processes an event.
func (s *Run) see(event *Event) {
	index, ours := s.Index(event.Object.Metadata.Name)
	if !ours {
		return
	}
	now := time.Since(s.start)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.LastEvent = now
	unit := &s.units[index]
	unit.version = event.Object.Metadata.ResourceVersion
	if event.Object.Status.Reason != "" && !unit.reported {
		unit.reported = true
		s.counts.Reported++
	}
	switch v1alpha1.QueueUnitPhase(event.Object.Status.Phase) {
	case v1alpha1.PhaseDequeued:
		if unit.phase == released {
			return
		}
		unit.phase = released
		s.counts.LastRelease = now
		unit.Releases++
		if unit.Releases > 1 {
			return
		}
		unit.Released = now
		s.counts.Released++
		if run := s.scenario.Classes[s.arrivals[index].Class].RunTime.Duration; run > 0 || s.turnover {
			s.endLater(run, index)
		}
	case v1alpha1.PhaseSucceeded:
		unit.phase = ended
	default:
		unit.phase = waiting
	}
}

func (s *Run) endLater(after time.Duration, index int) {
	time.AfterFunc(after, func() { s.due <- index })
}

// again is the delay before a request is repeated.
const again = 50 * time.Millisecond

// retry repeats a request until it succeeds or fails with an error that is not temporary.
func (s *Run) retry(ctx context.Context, send func() error) error {
	for {
		err := send()
		if err == nil || !wire.Passing(err) || ctx.Err() != nil {
			return err
		}
		s.mu.Lock()
		s.counts.Retried++
		s.mu.Unlock()
		if late := pace.Pass(ctx, again); late != nil {
			return errors.Join(err, late)
		}
	}
}

// create creates a unit. A repeated request can find that the unit exists.
func (s *Run) create(ctx context.Context, index int) error {
	id := s.identityOf(index)
	body, err := s.body(index)
	if err != nil {
		return err
	}
	sent := time.Since(s.start)
	tries := 0
	err = s.retry(ctx, func() error {
		tries++
		err := s.client.Create(ctx, id.namespace, body)
		if tries > 1 && wire.Conflict(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("creating unit %s/%s: %w", id.namespace, id.unit, err)
	}
	created := time.Since(s.start)
	s.mu.Lock()
	defer s.mu.Unlock()
	unit := &s.units[index]
	unit.Due, unit.Sent, unit.Created = s.arrivals[index].At, sent, created
	s.counts.Created++
	return nil
}

// end ends a unit in the version that was last seen. After a conflict the watch soon shows the new
// version.
func (s *Run) end(ctx context.Context, index int) error {
	id := s.identityOf(index)
	s.mu.Lock()
	version := s.units[index].version
	s.mu.Unlock()
	patch, err := endPatch(version, time.Now())
	if err != nil {
		return err
	}
	err = s.retry(ctx, func() error { return s.client.PatchStatus(ctx, id.namespace, id.unit, patch) })
	if wire.Conflict(err) {
		s.mu.Lock()
		s.counts.Conflicts++
		s.mu.Unlock()
		s.endLater(again, index)
		return nil
	}
	if err != nil {
		return fmt.Errorf("ending unit %s/%s: %w", id.namespace, id.unit, err)
	}
	now := time.Since(s.start)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units[index].Ended = now
	s.counts.Ended++
	return nil
}
