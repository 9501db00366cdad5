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

// How many creates are under way at most, and apart from them how many ends. A program
// that creates units has some workers, as job-extensions has 8 of a kind; ends come
// from as many jobs as there are.
const (
	createsInFlight = 8
	endsInFlight    = 32
)

// Unit is what became of one. Times are after the start of the stage; 0 is never.
type Unit struct {
	// Due is when it was to be created, Sent when it was, Created and Ended when the
	// API server had answered, Released when the watch reported it.
	Due, Sent, Created, Released, Ended time.Duration
	// Releases is how often it was released, which must be once.
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

// Counts is how far a stage is.
type Counts struct {
	Created, Released, Ended int
	// Reported are those whose reason of waiting was written.
	Reported int
	// Conflicts are ends that came to a unit that had changed, Retried are requests that
	// were sent again because the API server could not answer.
	Conflicts, Retried int
	// LastEvent is when the watch reported anything last, LastRelease when of a release.
	LastEvent, LastRelease time.Duration
}

// Stage is a playing of a scenario.
type Run struct {
	scenario   *scenario.Scenario
	client     *Client
	arrivals   []scenario.Arrival
	namespaces []string
	patterns   [][]pattern // by class and shape
	start      time.Time
	ends       *clock
	// moved is when act had something happen last.
	moved time.Duration

	mu     sync.Mutex
	units  []Unit
	counts Counts
}

// NewStage prepares to play the scenario.
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

// Counts is how far it is.
func (s *Run) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Elapsed is the time since the start.
func (s *Run) Elapsed() time.Duration { return time.Since(s.start) }

// Index finds a unit by its name; false for one of somebody else.
func (s *Run) Index(name string) (int, bool) {
	index, ok := indexOf([]byte(name))
	return index, ok && index < len(s.units)
}

// Play watches, creates and ends units until act returns, which is to wait for what
// is to happen. Where any of it fails, act's context ends and the failure is returned.
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
	// What ended the context says more than what act stumbled over then.
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

// watch follows the units, and the watches that the server ends.
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

// see takes an event.
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
		if run := s.scenario.Classes[s.arrivals[index].Class].RunTime.Duration; run > 0 {
			s.ends.set(now+run, index)
		}
	case "Succeeded":
		unit.phase = ended
	default:
		unit.phase = waiting
	}
}

// again is how long a request is put off that the API server could not answer.
const again = 50 * time.Millisecond

// retry sends until there is an answer that will not be another one.
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

// create creates a unit. One that was sent twice may be there already.
func (s *Run) create(ctx context.Context, index int) error {
	arrival := &s.arrivals[index]
	class := &s.scenario.Classes[arrival.Class]
	id := s.identityOf(index)
	// A microsecond apart, so that their order is that of their arrival.
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

// end ends a unit as it was last seen. When it has changed since, that is seen soon.
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
