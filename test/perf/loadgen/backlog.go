package loadgen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// Environment changes the quota and the controller during a backlog.
type Environment interface {
	// Room applies a tree with quota for this many units in each leaf.
	Room(ctx context.Context, units int) error
	// Restart kills the controller, calls meanwhile and starts the controller without waiting until
	// it is ready. It returns the time of the start.
	Restart(ctx context.Context, meanwhile func(context.Context) error) (time.Time, error)
	Use() (rig.Use, error)
	// Moment is called at the start of a part of the scenario: "waiting", "releasing", "over".
	Moment(ctx context.Context, name string) error
}

// BacklogFigures are the measurements of a backlog.
type BacklogFigures struct {
	// Reported is the time from the first create until the reasons of all units are written.
	Reported time.Duration
	// Waiting is the use until then, Idle the use during IdleFor after it.
	Waiting, Idle rig.Use
	IdleFor       time.Duration
	// Expected is the expected number of releases in each of the two parts.
	Expected [2]int
	// Released is the number of releases in each part.
	Released [2]int
	// First and Last are the times from the change of the tree to the first and last release of the
	// first part.
	First, Last time.Duration
	// Restart is the time from the start of the controller to its first release,
	// RestartAll to the last.
	Restart, RestartAll time.Duration
}

// RunBacklog runs a scenario of kind Backlog.
func (s *Run) RunBacklog(ctx context.Context, environment Environment) (*BacklogFigures, error) {
	f := &BacklogFigures{}
	before, err := environment.Use()
	if err != nil {
		return nil, err
	}
	err = s.Play(ctx, func(ctx context.Context) error {
		for _, part := range []func(context.Context, Environment, *BacklogFigures) error{s.fill, s.idle, s.release, s.restart} {
			if err := part(ctx, environment, f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.Waiting = f.Waiting.Since(before)
	return f, nil
}

// fill waits until all units wait with a reason, and there are no more writes.
func (s *Run) fill(ctx context.Context, environment Environment, f *BacklogFigures) error {
	reported := func(c Counts) bool { return c.Created == len(s.units) && c.Reported == len(s.units) }
	if err := s.reach(ctx, "every unit has a reason", reported); err != nil {
		return err
	}
	f.Reported = s.Counts().LastEvent
	if err := s.quiet(ctx); err != nil {
		return err
	}
	if c := s.Counts(); c.Released > 0 {
		return fmt.Errorf("%d units were released without quota", c.Released)
	}
	var err error
	f.Waiting, err = environment.Use()
	return err
}

// quiet waits until there are no more writes.
func (s *Run) quiet(ctx context.Context) error {
	settle := s.scenario.Backlog.Settle.Duration
	return s.Until(ctx, func(c Counts) bool { return s.Elapsed()-max(c.LastEvent, s.moved) >= settle })
}

func (s *Run) idle(ctx context.Context, environment Environment, f *BacklogFigures) error {
	if err := pass(ctx, s.scenario.Backlog.Rest.Duration); err != nil {
		return err
	}
	began := time.Now()
	before, err := environment.Use()
	if err != nil {
		return err
	}
	if err := pass(ctx, s.scenario.Backlog.Idle.Duration); err != nil {
		return err
	}
	after, err := environment.Use()
	if err != nil {
		return err
	}
	f.Idle, f.IdleFor = after.Since(before), time.Since(began)
	return environment.Moment(ctx, "waiting")
}

// pass waits for a duration.
func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// release increases the quota and waits until it is used.
func (s *Run) release(ctx context.Context, environment Environment, f *BacklogFigures) error {
	room := s.scenario.Backlog.Room
	f.Expected[0] = room * s.scenario.LeafCount()
	made := s.Elapsed()
	s.moved = made
	if err := environment.Room(ctx, room); err != nil {
		return err
	}
	if err := environment.Moment(ctx, "releasing"); err != nil {
		return err
	}
	if err := s.fillRoom(ctx, f.Expected[0]); err != nil {
		return err
	}
	f.Released[0] = s.Counts().Released
	first, last := s.releasesAfter(0)
	f.First, f.Last = first-made, last-made
	return nil
}

// fillRoom waits until this many units are released, and then for the time in which further
// releases would be seen.
func (s *Run) fillRoom(ctx context.Context, units int) error {
	if err := s.reach(ctx, fmt.Sprintf("%d are released", units), func(c Counts) bool { return c.Released >= units }); err != nil {
		return err
	}
	// During this time the controller updates the reasons of the other units.
	settle := s.scenario.Backlog.Settle.Duration
	return s.Until(ctx, func(c Counts) bool { return s.Elapsed()-c.LastRelease >= settle })
}

// restart restarts the controller and increases the quota while it is down.
func (s *Run) restart(ctx context.Context, environment Environment, f *BacklogFigures) error {
	plan := s.scenario.Backlog
	f.Expected[1] = plan.More * s.scenario.LeafCount()
	started, err := environment.Restart(ctx, func(ctx context.Context) error { return environment.Room(ctx, plan.Room+plan.More) })
	if err != nil {
		return err
	}
	began := started.Sub(s.start)
	s.moved = began
	if err := s.fillRoom(ctx, f.Expected[0]+f.Expected[1]); err != nil {
		return err
	}
	f.Released[1] = s.Counts().Released - f.Released[0]
	first, last := s.releasesAfter(began)
	f.Restart, f.RestartAll = first-began, last-began
	return environment.Moment(ctx, "over")
}

// releasesAfter returns the times of the first and the last release after a time.
func (s *Run) releasesAfter(began time.Duration) (first, last time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.units {
		at := s.units[i].Released
		if s.units[i].Releases == 0 || at < began {
			continue
		}
		if first == 0 || at < first {
			first = at
		}
		last = max(last, at)
	}
	return first, last
}

// Backlog adds the figures of a backlog.
func (o *Outcome) Backlog(r *report.Report, f *BacklogFigures) {
	bars, units := o.stage.scenario.Bars, float64(len(o.stage.units))
	s := r.Section("waiting")
	s.Count("units", len(o.stage.units))
	s.Add("created, each with a reason, after", f.Reported.Seconds(), "s", nil)
	controller := f.Waiting[rig.Controller]
	s.Add("controller, processor time", report.Milliseconds(controller.CPU)/units, "ms a unit", nil)
	s.Add("controller, memory", report.MiB(controller.Resident), "MiB", atMost(bars.ControllerMiB))
	s.Add("controller, peak memory", report.MiB(controller.Peak), "MiB", nil)
	for _, name := range []string{rig.Controller, "kube-apiserver", "etcd", rig.Tool} {
		var bar *report.Bar
		if name == rig.Controller {
			bar = atMost(bars.IdleCPU)
		}
		s.Add(name+", idle", f.Idle[name].CPU.Seconds()/f.IdleFor.Seconds(), "cores", bar)
	}

	s = r.Section("room is made")
	s.Count("to be released", f.Expected[0])
	s.Count("released", f.Released[0])
	s.Count("released more than once", o.again())
	s.Add("first release after", f.First.Seconds(), "s", nil)
	s.Add("last release after", f.Last.Seconds(), "s", nil)
	s.Add("rate", float64(f.Released[0]-1)/max(f.Last-f.First, time.Millisecond).Seconds(), "releases/s", atLeast(bars.ReleasesPerSecond))

	s = r.Section("controller is killed, room is made and it starts")
	s.Count("to be released", f.Expected[1])
	s.Count("released", f.Released[1])
	s.Add("first release after", f.Restart.Seconds(), "s", atMost(bars.RestartSeconds))
	s.Add("last release after", f.RestartAll.Seconds(), "s", nil)
}

// Check returns an error for results that are wrong independent of the figures.
func (o *Outcome) Check() error {
	if again := o.again(); again > 0 {
		return fmt.Errorf("%d units were released more than once: this is a bug in kube-queue", again)
	}
	if done, _ := o.counts.Sum(Ours); done == 0 {
		return errors.New("the audit log contains no write of kube-queue, so the figures would be meaningless")
	}
	return nil
}
