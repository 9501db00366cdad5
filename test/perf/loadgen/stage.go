package loadgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	patterns   [][]pattern // by class and shape
	start      time.Time
	ends       *clock
	// held has the units of a turnover that were released, in this order.
	held chan int
	// moved is the time of the last change made by act.
	moved time.Duration

	mu     sync.Mutex
	units  []Unit
	counts Counts
}

// NewRun prepares a run of the scenario.
func NewRun(client *Client, s *scenario.Scenario) (*Run, error) {
	stage := &Run{scenario: s, client: client, arrivals: s.Arrivals(), namespaces: s.Namespaces(), ends: newClock()}
	stage.units = make([]Unit, len(stage.arrivals))
	for c := range s.Classes {
		class := &s.Classes[c]
		shapes := make([]pattern, min(class.Shapes, class.Count))
		for number := range shapes {
			var err error
			if shapes[number], err = newPattern(class, number); err != nil {
				return nil, err
			}
		}
		stage.patterns = append(stage.patterns, shapes)
	}
	return stage, nil
}

// Counts returns the progress.
func (s *Run) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Elapsed returns the time since the start.
func (s *Run) Elapsed() time.Duration { return time.Since(s.start) }

// Index returns the index of a unit by name. It returns false for a unit that is not part of the
// run.
func (s *Run) Index(name string) (int, bool) {
	index, ok := indexOf([]byte(name))
	return index, ok && index < len(s.units)
}

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
		s.createAll,
		s.endAll,
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
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds(s.Counts()) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
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
	index, ours := indexOf(event.Name)
	if !ours || index >= len(s.units) {
		return
	}
	now := time.Since(s.start)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.LastEvent = now
	unit := &s.units[index]
	unit.version = string(event.Version)
	if len(event.Reason) > 0 && !unit.reported {
		unit.reported = true
		s.counts.Reported++
	}
	switch string(event.Phase) {
	case "Dequeued":
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
		if s.held != nil {
			s.held <- index // it has room for all units
		} else if run := s.scenario.Classes[s.arrivals[index].Class].RunTime.Duration; run > 0 {
			s.ends.set(now+run, index)
		}
	case "Succeeded":
		unit.phase = ended
	default:
		unit.phase = waiting
	}
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
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, context.Cause(ctx))
		case <-timer.C:
		}
	}
}

// create creates a unit. A repeated request can find that the unit exists.
func (s *Run) create(ctx context.Context, index int) error {
	arrival := &s.arrivals[index]
	class := &s.scenario.Classes[arrival.Class]
	id := s.identityOf(index)
	// Different times, so that units are ordered by arrival.
	submitted := s.start.Add(arrival.At + time.Duration(index)*time.Microsecond)
	body := s.patterns[arrival.Class][class.ShapeOf(int(arrival.Number))].body(id, submitted)
	sent := time.Since(s.start)
	tries := 0
	err := s.retry(ctx, func() error {
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
	unit.Due, unit.Sent, unit.Created = arrival.At, sent, created
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
	patch := endPatch(version, time.Now())
	err := s.retry(ctx, func() error { return s.client.PatchStatus(ctx, id.namespace, id.unit, patch) })
	if wire.Conflict(err) {
		s.mu.Lock()
		s.counts.Conflicts++
		s.mu.Unlock()
		s.ends.set(time.Since(s.start)+again, index)
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
